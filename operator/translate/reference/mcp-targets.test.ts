import { describe, expect, test } from '@jest/globals'
import { GROUP } from '#api/names.ts'
import type { Context } from '../common/context.ts'
import { findMcpClashes, selectMcpTargets } from './mcp-targets.ts'

interface Port {
  readonly port: number
  readonly name?: string
  readonly appProtocol?: string
}
const MCP = 'proxy.dev/mcp'
const service = (namespace: string, name: string, ports: readonly Port[], { labels = {}, annotations = {} } = {}) => ({
  metadata: { namespace, name, labels, annotations },
  spec: { ports },
})
const select = (services: readonly ReturnType<typeof service>[], selector: object) => {
  const list = (kind: string) =>
    kind === 'Service'
      ? services
      : [...new Set(services.map(({ metadata }) => metadata.namespace))].map((name) => ({ metadata: { name, labels: { team: name } } }))
  const snapshot = {
    list,
    inNamespace: (_: string, namespace: string) => services.filter(({ metadata }) => metadata.namespace === namespace),
    get: (kind: string, _: string, name: string) => list(kind).find(({ metadata }) => metadata.name === name),
  }
  const grants = { permits: (_from: object, _to: object, namespace: string) => namespace !== 'closed' }
  const context = { snapshot, grants, options: { backendGrants: 'route-and-policy' } } as unknown as Context
  const { targets, problems, isRestricted } = selectMcpTargets(context, { group: GROUP, kind: 'ProxyBackend', namespace: 'ns' }, selector)
  if (isRestricted) problems.push('restricted')
  return problems.length > 0 ? problems : targets.map(({ name, service: key, port, path, protocol }) => [name, key, port, path, protocol].join(' ').trim())
}

describe('targets of a selector (mcp.md §2)', () => {
  test.each<[string, readonly ReturnType<typeof service>[], object, string[]]>([
    [
      'ports by their appProtocol; siblings are left alone (row 3)',
      [service('ns', 'a', [{ port: 80, appProtocol: MCP }, { port: 81, appProtocol: `${MCP}-sse` }, { port: 82 }, { port: 83, appProtocol: 'http' }])],
      { services: {} },
      ['a-80 ns/a 80  StreamableHTTP', 'a-81 ns/a 81  SSE'],
    ],
    [
      'names: annotation, port name, port number (row 5); path by annotation (row 6)',
      [
        service('ns', 'a', [{ port: 80, appProtocol: MCP }], { annotations: { 'proxy.dev/mcp-target-name': 'own', 'proxy.dev/mcp-path': '/x' } }),
        service('ns', 'b', [{ port: 80, name: 'tools', appProtocol: MCP }]),
        service('ns', 'c', [{ port: 80, appProtocol: MCP }]),
      ],
      { services: {} },
      ['own ns/a 80 /x StreamableHTTP', 'b-tools ns/b 80  StreamableHTTP', 'c-80 ns/c 80  StreamableHTTP'],
    ],
    [
      'by namespace, name and port, whatever order they come in',
      [
        service('ns', 'z', [
          { port: 81, appProtocol: MCP },
          { port: 80, appProtocol: MCP },
        ]),
        service('ns', 'a-b', [{ port: 80, appProtocol: MCP }]),
        service('ns', 'a', [{ port: 80, appProtocol: MCP }]),
        service('m', 'y', [{ port: 80, appProtocol: MCP }]),
      ],
      { namespaces: {} },
      [
        'y-80 m/y 80  StreamableHTTP',
        'a-80 ns/a 80  StreamableHTTP',
        'a-b-80 ns/a-b 80  StreamableHTTP',
        'z-80 ns/z 80  StreamableHTTP',
        'z-81 ns/z 81  StreamableHTTP',
      ],
    ],
    [
      'without namespaces only the backend’s own (row 4)',
      [
        service('other', 'a', [{ port: 80, appProtocol: MCP }]),
        service('ns', 'b', [{ port: 80, appProtocol: MCP }], { labels: { mcp: 'yes' } }),
        service('ns', 'c', [{ port: 80, appProtocol: MCP }]),
      ],
      { services: { matchLabels: { mcp: 'yes' } } },
      ['b-80 ns/b 80  StreamableHTTP'],
    ],
    [
      'namespaces by their labels (row 4)',
      [service('other', 'a', [{ port: 80, appProtocol: MCP }]), service('ns', 'b', [{ port: 80, appProtocol: MCP }])],
      { namespaces: { matchLabels: { team: 'other' } } },
      ['a-80 other/a 80  StreamableHTTP'],
    ],
    [
      'none of a namespace that does not permit it, if they speak MCP',
      [service('closed', 'a', [{ port: 80, appProtocol: MCP }]), service('ns', 'b', [{ port: 80, appProtocol: MCP }])],
      { namespaces: {} },
      ['restricted'],
    ],
    [
      'Services that do not speak MCP need no permission',
      [service('closed', 'a', [{ port: 80 }, { port: 81, appProtocol: 'constructor' }]), service('ns', 'b', [{ port: 80, appProtocol: MCP }])],
      { namespaces: {} },
      ['b-80 ns/b 80  StreamableHTTP'],
    ],
    [
      'an annotation that is no name (row 5)',
      [service('ns', 'a', [{ port: 80, appProtocol: MCP }], { annotations: { 'proxy.dev/mcp-target-name': 'a_b' } })],
      { services: {} },
      ['annotation proxy.dev/mcp-target-name of Service ns/a is not a DNS name: a_b'],
    ],
    [
      'one name for two (row 5)',
      [service('other', 'a', [{ port: 80, appProtocol: MCP }]), service('ns', 'a', [{ port: 80, appProtocol: MCP }])],
      { namespaces: {} },
      ['Services ns/a:80 and other/a:80 are both MCP target a-80; set annotation proxy.dev/mcp-target-name'],
    ],
    [
      'a selector that Kubernetes would not read (mcp.md §1.3)',
      [],
      {
        services: {
          matchLabels: { 'a b': 'x', app: 'no/value' },
          matchExpressions: [
            { key: 'tier', operator: 'In' },
            { key: 'tier', operator: 'Exists', values: ['x'] },
            { key: 'tier', operator: 'Has' },
          ],
        },
        namespaces: { matchExpressions: [{ key: 'proxy.dev/team', operator: 'NotIn', values: ['-'] }] },
      },
      [
        'namespaces: "-" is not a label value',
        'services: "a b" is not a label key',
        'services: "no/value" is not a label value',
        'services: In of label tier needs values',
        'services: Exists of label tier takes no values',
        'services: Has of label tier is none of In, NotIn, Exists, DoesNotExist',
      ],
    ],
  ])('%s', (_, services, selector, expected) => expect(select(services, selector)).toEqual(expected))
})

test('two entries of a backend may not give one name', () => {
  const found = (name: string) => ({ targets: [{ name, service: 'ns/a', port: 80, protocol: 'StreamableHTTP' as const }] })
  expect(findMcpClashes({ targets: [{ name: 'a-80' }, { name: 'sel', selector: found('a-80') }, { name: 'other', selector: found('b-80') }] })).toEqual([
    'static target a-80 and Service ns/a:80 of target sel are both MCP target a-80; rename one, or set annotation proxy.dev/mcp-target-name',
  ])
})
