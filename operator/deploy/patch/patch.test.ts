import { describe, expect, test } from '@jest/globals'
import type { Json, JsonObject } from './json.ts'
import { patchObject } from './patch.ts'

const freeze = <T extends Json>(value: T): T => {
  if (typeof value === 'object' && value !== null) for (const child of Object.values(value)) freeze(child)
  return Object.freeze(value)
}
const pod = (spec: JsonObject): JsonObject => ({ spec: { template: { spec } } })
const container = (fields: JsonObject): JsonObject => pod({ containers: [{ name: 'proxy', ...fields }] })
const service = (ports: readonly JsonObject[]): JsonObject => ({ spec: { ports } })

/** sentence, kind, object, patch, result */
type Row = readonly [string, string, JsonObject, JsonObject, JsonObject]

const rows: readonly Row[] = [
  ['a scalar is overwritten', 'Deployment', { spec: { replicas: 1 } }, { spec: { replicas: 2 } }, { spec: { replicas: 2 } }],
  ['an empty patch changes nothing', 'Deployment', { spec: { replicas: 1 } }, {}, { spec: { replicas: 1 } }],
  ['null takes a field out', 'Deployment', { spec: { replicas: 1, paused: true } }, { spec: { replicas: null } }, { spec: { paused: true } }],
  ['null for what is not there adds nothing', 'Deployment', { spec: {} }, { spec: { strategy: { rollingUpdate: null } } }, { spec: { strategy: {} } }],
  ['a map is merged', 'Deployment', pod({ nodeSelector: { a: '1' } }), pod({ nodeSelector: { b: '2' } }), pod({ nodeSelector: { a: '1', b: '2' } })],
  [
    '$patch: replace keeps the given keys only',
    'Deployment',
    pod({ nodeSelector: { a: '1' } }),
    pod({ nodeSelector: { b: '2', $patch: 'replace' } }),
    pod({ nodeSelector: { b: '2' } }),
  ],
  [
    '$patch: replace of a map that is not there',
    'Deployment',
    pod({}),
    pod({ nodeSelector: { b: '2', $patch: 'replace' } }),
    pod({ nodeSelector: { b: '2' } }),
  ],
  ['$patch: delete empties a map', 'Deployment', pod({ nodeSelector: { a: '1' } }), pod({ nodeSelector: { $patch: 'delete' } }), pod({ nodeSelector: {} })],
  ['$patch: delete of a map that is not there', 'Deployment', pod({}), pod({ nodeSelector: { $patch: 'delete' } }), pod({})],
  [
    '$patch: merge says what happens anyway',
    'Deployment',
    pod({ nodeSelector: { a: '1' } }),
    pod({ nodeSelector: { $patch: 'merge', b: '2' } }),
    pod({ nodeSelector: { a: '1', b: '2' } }),
  ],
  ['a list without merge key is replaced', 'Deployment', container({ args: ['a', 'b'] }), container({ args: ['c'] }), container({ args: ['c'] })],
  [
    'a selector of a budget is replaced',
    'PodDisruptionBudget',
    { spec: { selector: { matchLabels: { a: '1' } } } },
    { spec: { selector: { matchLabels: { b: '2' } } } },
    { spec: { selector: { matchLabels: { b: '2' } } } },
  ],
  [
    'finalizers are added to',
    'Deployment',
    { metadata: { finalizers: ['a', 'b'] } },
    { metadata: { finalizers: ['c', 'a'] } },
    { metadata: { finalizers: ['c', 'a', 'b'] } },
  ],
  [
    'items with equal keys merge',
    'Service',
    service([{ port: 80, name: 'http' }]),
    service([{ port: 80, nodePort: 30_000 }]),
    service([{ port: 80, name: 'http', nodePort: 30_000 }]),
  ],
  [
    'a new item stands before those that were there',
    'Service',
    service([{ port: 80 }, { port: 81 }]),
    service([{ port: 90 }]),
    service([{ port: 90 }, { port: 80 }, { port: 81 }]),
  ],
  [
    'items that the patch names stand in its order',
    'Service',
    service([{ port: 80 }, { port: 81 }, { port: 82 }]),
    service([
      { port: 82, name: 'c' },
      { port: 80, name: 'a' },
    ]),
    service([{ port: 81 }, { port: 82, name: 'c' }, { port: 80, name: 'a' }]),
  ],
  [
    'a list that is not there is taken over',
    'Service',
    { spec: {} },
    service([{ $patch: 'replace' }, { port: 80 }, { port: 81, $patch: 'delete' }]),
    service([{ port: 80 }]),
  ],
  ['$patch: delete takes an item out', 'Service', service([{ port: 80 }, { port: 81 }]), service([{ port: 80, $patch: 'delete' }]), service([{ port: 81 }])],
  ['$patch: delete of an item that is not there', 'Service', service([{ port: 80 }]), service([{ port: 81, $patch: 'delete' }]), service([{ port: 80 }])],
  [
    '$patch: replace as an item replaces the list',
    'Service',
    service([{ port: 80 }]),
    service([{ $patch: 'replace' }, { port: 81, name: null }]),
    service([{ port: 81 }]),
  ],
  ['$patch: replace in an item loses that item', 'Service', service([{ port: 80 }]), service([{ port: 81, $patch: 'replace' }]), service([])],
  [
    'volumes merge by name',
    'Deployment',
    pod({ volumes: [{ name: 'a', emptyDir: {} }] }),
    pod({ volumes: [{ name: 'a', $retainKeys: ['name', 'configMap'], configMap: { name: 'c' } }] }),
    pod({ volumes: [{ name: 'a', configMap: { name: 'c' } }] }),
  ],
  [
    '$retainKeys is no field of a new item',
    'Deployment',
    pod({ volumes: [] }),
    pod({ volumes: [{ name: 'a', $retainKeys: ['name', 'emptyDir'], emptyDir: {} }] }),
    pod({ volumes: [{ name: 'a', emptyDir: {} }] }),
  ],
  [
    '$retainKeys drops what it does not list',
    'Deployment',
    { spec: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } } } },
    { spec: { strategy: { $retainKeys: ['type'], type: 'Recreate' } } },
    { spec: { strategy: { type: 'Recreate' } } },
  ],
  [
    '$setElementOrder of values',
    'Deployment',
    container({ args: ['a', 'b', 'c'] }),
    container({ '$setElementOrder/args': ['c', 'a'] }),
    container({ args: ['b', 'c', 'a'] }),
  ],
  [
    '$setElementOrder of items',
    'Deployment',
    container({ env: [{ name: 'a' }, { name: 'b' }] }),
    container({ '$setElementOrder/env': [{ name: 'b' }, { name: 'c' }, { name: 'a' }], env: [{ name: 'c', value: 'x' }] }),
    container({ env: [{ name: 'b' }, { name: 'c', value: 'x' }, { name: 'a' }] }),
  ],
  [
    '$deleteFromPrimitiveList takes values out',
    'Deployment',
    container({ args: ['a', 'b', 'a'] }),
    container({ '$deleteFromPrimitiveList/args': ['a', 'z'] }),
    container({ args: ['b'] }),
  ],
  ['$deleteFromPrimitiveList of a list that is not there', 'Deployment', container({}), container({ '$deleteFromPrimitiveList/args': ['a'] }), container({})],
  [
    'tolerations merge by key',
    'Deployment',
    pod({ tolerations: [{ key: 'a', operator: 'Exists' }] }),
    pod({ tolerations: [{ key: 'a', effect: 'NoSchedule' }, { key: 'b' }] }),
    pod({ tolerations: [{ key: 'a', operator: 'Exists', effect: 'NoSchedule' }, { key: 'b' }] }),
  ],
  [
    'tolerations without key are added at the end',
    'Deployment',
    pod({ tolerations: [{ operator: 'Exists' }, { key: 'a' }] }),
    pod({ tolerations: [{ operator: 'Exists', effect: 'NoExecute' }, { key: 'b' }] }),
    pod({ tolerations: [{ key: 'b' }, { operator: 'Exists' }, { key: 'a' }, { operator: 'Exists', effect: 'NoExecute' }] }),
  ],
  [
    'a toleration is taken out by key',
    'Deployment',
    pod({ tolerations: [{ operator: 'Exists' }, { key: 'a' }] }),
    pod({ tolerations: [{ key: 'a', $patch: 'delete' }] }),
    pod({ tolerations: [{ operator: 'Exists' }] }),
  ],
  [
    'a map that takes the place of a scalar',
    'HorizontalPodAutoscaler',
    { spec: { maxReplicas: 1 } },
    { spec: { behavior: { scaleUp: null, scaleDown: { selectPolicy: 'Max' } } } },
    { spec: { maxReplicas: 1, behavior: { scaleDown: { selectPolicy: 'Max' } } } },
  ],
  ['an unknown field is left out', 'Deployment', { spec: {} }, { spec: { replicsa: 1 } }, { spec: {} }],
  [
    'a quantity becomes a string',
    'Deployment',
    container({}),
    container({ resources: { limits: { cpu: 2 } } }),
    container({ resources: { limits: { cpu: '2' } } }),
  ],
]

/** sentence, kind, object, patch, error */
const faults: readonly (readonly [string, string, JsonObject, JsonObject, string])[] = [
  ['a string for an integer', 'Deployment', {}, { spec: { replicas: 'x' } }, 'spec.replicas is "x"; give an integer'],
  ['a number for a string', 'Deployment', {}, container({ image: 1 }), 'spec.template.spec.containers[0].image is 1; give a string'],
  ['an object for a list', 'Deployment', {}, pod({ containers: { name: 'proxy' } }), 'spec.template.spec.containers is {"name":"proxy"}; give a list'],
  ['a list for an object', 'Service', {}, { spec: { selector: ['a'] } }, 'spec.selector is ["a"]; give an object'],
  ['a string for a boolean', 'Deployment', {}, { spec: { paused: 'yes' } }, 'spec.paused is "yes"; give true or false'],
  ['a boolean for a label value', 'Deployment', {}, pod({ nodeSelector: { 'a/b': true } }), 'spec.template.spec.nodeSelector.a/b is true; give a string'],
  [
    'an unknown action',
    'Deployment',
    { spec: { strategy: {} } },
    { spec: { strategy: { $patch: 'drop' } } },
    'spec.strategy.$patch is "drop"; use delete, replace or merge',
  ],
  [
    'an unknown action in an item',
    'Service',
    service([{ port: 80 }]),
    service([{ port: 80, $patch: 'drop' }]),
    'spec.ports[0].$patch is "drop"; use delete, replace or merge',
  ],
  [
    'an unknown directive',
    'Service',
    { spec: {} },
    { spec: { $order: [] } },
    'spec.$order is not a directive; use $patch, $retainKeys, $setElementOrder/<field> or $deleteFromPrimitiveList/<field>',
  ],
  [
    'an item without merge key',
    'Service',
    service([{ port: 80 }]),
    service([{ name: 'x' }]),
    'spec.ports[0] has no port, by which the items of this list are merged; set it',
  ],
  ['a scalar among objects', 'Service', service([{ port: 80 }]), { spec: { ports: [80] } }, 'spec.ports[0] is 80; give an object with port'],
  [
    '$patch: delete without merge key',
    'Deployment',
    pod({ tolerations: [{ key: 'a' }] }),
    pod({ tolerations: [{ $patch: 'delete' }] }),
    'spec.template.spec.tolerations[0] has no key, by which the items of this list are merged; set it',
  ],
  [
    '$patch: delete in a list without merge key',
    'Deployment',
    container({ envFrom: [{ prefix: 'a' }] }),
    container({ envFrom: [{ prefix: 'a', $patch: 'delete' }] }),
    'spec.template.spec.containers[0].envFrom[0].$patch is "delete", but items of this list have no merge key; give the whole list as it should be',
  ],
  [
    '$retainKeys that is no list',
    'Deployment',
    { spec: { strategy: {} } },
    { spec: { strategy: { $retainKeys: 'type' } } },
    'spec.strategy.$retainKeys is "type"; give a list of field names',
  ],
  [
    '$retainKeys without what the patch sets',
    'Deployment',
    { spec: { strategy: {} } },
    { spec: { strategy: { $retainKeys: [], type: 'Recreate' } } },
    'spec.strategy.type is set but not listed in $retainKeys; list it there',
  ],
  [
    '$setElementOrder that is no list',
    'Deployment',
    container({ args: ['a'] }),
    container({ '$setElementOrder/args': 'a' }),
    'spec.template.spec.containers[0].$setElementOrder/args is "a"; give a list',
  ],
  [
    '$setElementOrder without merge key',
    'Service',
    service([{ port: 80 }]),
    { spec: { '$setElementOrder/ports': [{ name: 'x' }] } },
    '$setElementOrder for spec.ports: give objects with port',
  ],
  [
    '$setElementOrder against the order of the patch',
    'Service',
    service([{ port: 80 }]),
    { spec: { '$setElementOrder/ports': [{ port: 2 }, { port: 1 }], ports: [{ port: 1 }, { port: 2 }] } },
    'spec.ports: its items are not in the order of $setElementOrder; list every item of the patch there, in the same order',
  ],
  [
    '$deleteFromPrimitiveList of objects',
    'Service',
    service([{ port: 80 }]),
    { spec: { '$deleteFromPrimitiveList/ports': [80] } },
    '$deleteFromPrimitiveList for spec.ports, a list of objects; use $patch: delete in an item',
  ],
]

describe('a strategic merge patch', () => {
  test.each(rows)('%s', (_, kind, object, patch, expected) => {
    expect(patchObject(kind, freeze(object), freeze(patch))).toMatchObject({ ok: true, object: expected })
    const result = patchObject(kind, object, patch)
    expect(result.ok && result.object).toEqual(expected)
  })
  test.each(faults)('error: %s', (_, kind, object, patch, error) => {
    const result = patchObject(kind, freeze(object), freeze(patch))
    expect(result).toEqual({ ok: false, errors: [error] })
  })
  test('says which unknown field it leaves out', () => {
    const result = patchObject('Deployment', {}, container({ imge: 'x' }))
    expect(result.ok && result.notes).toEqual(['spec.template.spec.containers[0].imge is not a field that Kubernetes knows; it is left out'])
  })
})
