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
  ['null removes a field', 'Deployment', { spec: { replicas: 1, paused: true } }, { spec: { replicas: null } }, { spec: { paused: true } }],
  ['null for an absent field adds nothing', 'Deployment', { spec: {} }, { spec: { strategy: { rollingUpdate: null } } }, { spec: { strategy: {} } }],
  ['a map is merged', 'Deployment', pod({ nodeSelector: { a: '1' } }), pod({ nodeSelector: { b: '2' } }), pod({ nodeSelector: { a: '1', b: '2' } })],
  [
    '$patch: replace keeps only the keys of the patch',
    'Deployment',
    pod({ nodeSelector: { a: '1' } }),
    pod({ nodeSelector: { b: '2', $patch: 'replace' } }),
    pod({ nodeSelector: { b: '2' } }),
  ],
  ['$patch: replace of an absent map sets it', 'Deployment', pod({}), pod({ nodeSelector: { b: '2', $patch: 'replace' } }), pod({ nodeSelector: { b: '2' } })],
  ['$patch: delete empties a map', 'Deployment', pod({ nodeSelector: { a: '1' } }), pod({ nodeSelector: { $patch: 'delete' } }), pod({ nodeSelector: {} })],
  ['$patch: delete of an absent map changes nothing', 'Deployment', pod({}), pod({ nodeSelector: { $patch: 'delete' } }), pod({})],
  [
    '$patch: merge merges, which is the default',
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
    'finalizers are merged as a set',
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
    'a new item comes before existing ones',
    'Service',
    service([{ port: 80 }, { port: 81 }]),
    service([{ port: 90 }]),
    service([{ port: 90 }, { port: 80 }, { port: 81 }]),
  ],
  [
    'items of the patch get the order of the patch',
    'Service',
    service([{ port: 80 }, { port: 81 }, { port: 82 }]),
    service([
      { port: 82, name: 'c' },
      { port: 80, name: 'a' },
    ]),
    service([{ port: 81 }, { port: 82, name: 'c' }, { port: 80, name: 'a' }]),
  ],
  [
    'an absent list is set without directives',
    'Service',
    { spec: {} },
    service([{ $patch: 'replace' }, { port: 80 }, { port: 81, $patch: 'delete' }]),
    service([{ port: 80 }]),
  ],
  ['$patch: delete removes an item', 'Service', service([{ port: 80 }, { port: 81 }]), service([{ port: 80, $patch: 'delete' }]), service([{ port: 81 }])],
  ['$patch: delete of an absent item changes nothing', 'Service', service([{ port: 80 }]), service([{ port: 81, $patch: 'delete' }]), service([{ port: 80 }])],
  [
    '$patch: replace as an item replaces the list',
    'Service',
    service([{ port: 80 }]),
    service([{ $patch: 'replace' }, { port: 81, name: null }]),
    service([{ port: 81 }]),
  ],
  ['$patch: replace in an item drops that item', 'Service', service([{ port: 80 }]), service([{ port: 81, $patch: 'replace' }]), service([])],
  [
    'volumes merge by name',
    'Deployment',
    pod({ volumes: [{ name: 'a', emptyDir: {} }] }),
    pod({ volumes: [{ name: 'a', $retainKeys: ['name', 'configMap'], configMap: { name: 'c' } }] }),
    pod({ volumes: [{ name: 'a', configMap: { name: 'c' } }] }),
  ],
  [
    '$retainKeys is not copied into a new item',
    'Deployment',
    pod({ volumes: [] }),
    pod({ volumes: [{ name: 'a', $retainKeys: ['name', 'emptyDir'], emptyDir: {} }] }),
    pod({ volumes: [{ name: 'a', emptyDir: {} }] }),
  ],
  [
    '$retainKeys drops fields that it does not list',
    'Deployment',
    { spec: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } } } },
    { spec: { strategy: { $retainKeys: ['type'], type: 'Recreate' } } },
    { spec: { strategy: { type: 'Recreate' } } },
  ],
  [
    '$setElementOrder orders values',
    'Deployment',
    container({ args: ['a', 'b', 'c'] }),
    container({ '$setElementOrder/args': ['c', 'a'] }),
    container({ args: ['b', 'c', 'a'] }),
  ],
  [
    '$setElementOrder orders items',
    'Deployment',
    container({ env: [{ name: 'a' }, { name: 'b' }] }),
    container({ '$setElementOrder/env': [{ name: 'b' }, { name: 'c' }, { name: 'a' }], env: [{ name: 'c', value: 'x' }] }),
    container({ env: [{ name: 'b' }, { name: 'c', value: 'x' }, { name: 'a' }] }),
  ],
  [
    '$deleteFromPrimitiveList removes values',
    'Deployment',
    container({ args: ['a', 'b', 'a'] }),
    container({ '$deleteFromPrimitiveList/args': ['a', 'z'] }),
    container({ args: ['b'] }),
  ],
  [
    '$deleteFromPrimitiveList of an absent list changes nothing',
    'Deployment',
    container({}),
    container({ '$deleteFromPrimitiveList/args': ['a'] }),
    container({}),
  ],
  [
    'tolerations merge by key',
    'Deployment',
    pod({ tolerations: [{ key: 'a', operator: 'Exists' }] }),
    pod({ tolerations: [{ key: 'a', effect: 'NoSchedule' }, { key: 'b' }] }),
    pod({ tolerations: [{ key: 'a', operator: 'Exists', effect: 'NoSchedule' }, { key: 'b' }] }),
  ],
  [
    'tolerations without key are appended',
    'Deployment',
    pod({ tolerations: [{ operator: 'Exists' }, { key: 'a' }] }),
    pod({ tolerations: [{ operator: 'Exists', effect: 'NoExecute' }, { key: 'b' }] }),
    pod({ tolerations: [{ key: 'b' }, { operator: 'Exists' }, { key: 'a' }, { operator: 'Exists', effect: 'NoExecute' }] }),
  ],
  [
    'a toleration is removed by key',
    'Deployment',
    pod({ tolerations: [{ operator: 'Exists' }, { key: 'a' }] }),
    pod({ tolerations: [{ key: 'a', $patch: 'delete' }] }),
    pod({ tolerations: [{ operator: 'Exists' }] }),
  ],
  [
    'a map replaces a scalar',
    'HorizontalPodAutoscaler',
    { spec: { maxReplicas: 1 } },
    { spec: { behavior: { scaleUp: null, scaleDown: { selectPolicy: 'Max' } } } },
    { spec: { maxReplicas: 1, behavior: { scaleDown: { selectPolicy: 'Max' } } } },
  ],
  ['an unknown field is dropped', 'Deployment', { spec: {} }, { spec: { replicsa: 1 } }, { spec: {} }],
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
  ['a string instead of an integer', 'Deployment', {}, { spec: { replicas: 'x' } }, 'spec.replicas is "x"; give an integer'],
  ['a number instead of a string', 'Deployment', {}, container({ image: 1 }), 'spec.template.spec.containers[0].image is 1; give a string'],
  ['an object instead of a list', 'Deployment', {}, pod({ containers: { name: 'proxy' } }), 'spec.template.spec.containers is {"name":"proxy"}; give a list'],
  ['a list instead of an object', 'Service', {}, { spec: { selector: ['a'] } }, 'spec.selector is ["a"]; give an object'],
  ['a string instead of a boolean', 'Deployment', {}, { spec: { paused: 'yes' } }, 'spec.paused is "yes"; give true or false'],
  [
    'a boolean instead of a label value',
    'Deployment',
    {},
    pod({ nodeSelector: { 'a/b': true } }),
    'spec.template.spec.nodeSelector.a/b is true; give a string',
  ],
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
    '$retainKeys that is not a list',
    'Deployment',
    { spec: { strategy: {} } },
    { spec: { strategy: { $retainKeys: 'type' } } },
    'spec.strategy.$retainKeys is "type"; give a list of field names',
  ],
  [
    '$retainKeys without a field that the patch sets',
    'Deployment',
    { spec: { strategy: {} } },
    { spec: { strategy: { $retainKeys: [], type: 'Recreate' } } },
    'spec.strategy.type is set but not listed in $retainKeys; list it there',
  ],
  [
    '$setElementOrder that is not a list',
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
    '$setElementOrder that contradicts the order of the patch',
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
  test.each(faults)('rejects %s', (_, kind, object, patch, error) => {
    const result = patchObject(kind, freeze(object), freeze(patch))
    expect(result).toEqual({ ok: false, errors: [error] })
  })
  test('reports an unknown field with its path', () => {
    const result = patchObject('Deployment', {}, container({ imge: 'x' }))
    expect(result.ok && result.warnings).toEqual(['spec.template.spec.containers[0].imge: unknown field, ignored; did you mean image?'])
  })
})
