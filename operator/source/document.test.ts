import { withoutCodes } from '#api/messages/code.ts'
import { describe, expect, test } from '@jest/globals'
import { readChunk } from './document.ts'

const route = (spec: string): string => `apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata:\n  name: r\nspec:\n${spec}`
const gateway = (listener: string): string =>
  `apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata:\n  name: g\nspec:\n  gatewayClassName: proxy\n  listeners:\n    - ${listener}`

/** Sentence -> manifest, and the expected finding as `line: field: message`. */
const mistakes: Record<string, [manifest: string, finding: string | RegExp]> = {
  'YAML that does not parse': ['a: [1', /^1: : YAML: /],
  'a tab as indentation': ['apiVersion: v1\nkind: Secret\nmetadata:\n\tname: a', /^4: : YAML: /],
  'a document that is not an object': ['- 1', '1: : expected an object with apiVersion, kind and metadata'],
  'no kind': ['apiVersion: v1\nmetadata: {name: a}', '1: kind: kind is required; add it'],
  'no name': ['apiVersion: v1\nkind: Secret\nmetadata:\n  labels: {}', '3: metadata.name: name is required; add it'],
  'a kind in the wrong case': [
    'apiVersion: gateway.networking.k8s.io/v1\nkind: HttpRoute\nmetadata: {name: a}',
    '2: kind: kind HttpRoute is not known; did you mean HTTPRoute?',
  ],
  'a kind that does not exist in the core group': [
    'apiVersion: v1\nkind: Gizmo\nmetadata: {name: a}',
    '2: kind: kind Gizmo is not known; correct it, or apiVersion v1',
  ],
  'a kind of ours that does not exist': [
    'apiVersion: proxy.dev/v1alpha1\nkind: ProxyPolicies\nmetadata: {name: a}',
    /^2: kind: kind ProxyPolicies is not known; did you mean ProxyPolicy/,
  ],
  'a known kind with the wrong group': [
    'apiVersion: v1\nkind: Gateway\nmetadata: {name: a}',
    '2: kind: Gateway has apiVersion gateway.networking.k8s.io/v1, not v1',
  ],
  'a version that does not exist': [
    'apiVersion: gateway.networking.k8s.io/v7\nkind: Gateway\nmetadata: {name: a}',
    '2: kind: version v7 of Gateway is not known; use gateway.networking.k8s.io/v1',
  ],
  'an unknown field': [
    gateway('{name: a, port: 1, protocol: HTTP, hostnames: a.example.com}'),
    '8: spec.listeners[0].hostnames: unknown field; did you mean hostname?',
  ],
  'an unknown field without a similar one': [
    'apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\nspec:\n  colour: red',
    '6: spec.colour: unknown field; known here: finalizers',
  ],
  'an unknown field without a value': [route('  hostname:\n  rules: []'), /^6: spec\.hostname: unknown field; did you mean hostnames\?$/],
  'a string instead of a number': [gateway('{name: a, port: "80", protocol: HTTP}'), '8: spec.listeners[0].port: expected an integer, got "80"'],
  'a number instead of a string': [route('  hostnames: [80]'), '6: spec.hostnames[0]: expected a string, got 80; put it in quotes'],
  'an object instead of a list': [route('  parentRefs: {name: g}'), /^6: spec\.parentRefs: expected a list, got {"name":"g"}; start each item with "- "$/],
  'a number out of range': [gateway('{name: a, port: 70000, protocol: HTTP}'), '8: spec.listeners[0].port: 70000 is out of range; allowed: 1 to 65535'],
  'a required field that is missing': [gateway('{port: 80, protocol: HTTP}'), '8: spec.listeners[0]: name is required; add it'],
  'a value that the enum does not have': [
    route('  rules:\n    - matches:\n        - path:\n            type: Prefix\n            value: /a'),
    '9: spec.rules[0].matches[0].path.type: "Prefix" is not one of Exact, PathPrefix, RegularExpression',
  ],
  'a value in the wrong case': [
    route('  rules:\n    - matches: [{method: get}]'),
    '7: spec.rules[0].matches[0].method: "get" is not one of GET, HEAD, POST, PUT, DELETE, CONNECT, OPTIONS, TRACE, PATCH; did you mean GET?',
  ],
  'a duration without unit': [
    route('  rules:\n    - timeouts:\n        request: "10"'),
    '8: spec.rules[0].timeouts.request: "10" is not valid; write a duration such as 500ms, 10s or 1m30s',
  ],
  'too many items': [
    route(`  hostnames: [${Array.from({ length: 17 }, (_, i) => `h${i}.example.com`).join(', ')}]`),
    '6: spec.hostnames: takes at most 16 items, has 17',
  ],
  'a path without leading slash': [
    route('  rules:\n    - matches:\n        - path: {value: a}'),
    "8: spec.rules[0].matches[0].path: value must be an absolute path and start with '/' when type one of ['Exact', 'PathPrefix']",
  ],
  'a path with two slashes': [
    route('  rules:\n    - matches:\n        - path: {value: /a//b}'),
    "8: spec.rules[0].matches[0].path: must not contain '//' when type one of ['Exact', 'PathPrefix']",
  ],
  'a filter without its settings': [
    route('  rules:\n    - filters:\n        - type: URLRewrite'),
    '8: spec.rules[0].filters[0]: filter.urlRewrite must be specified for URLRewrite filter.type',
  ],
  'settings of another filter type': [
    route('  rules:\n    - filters:\n        - type: CORS\n          cors: {}\n          urlRewrite: {}'),
    '8: spec.rules[0].filters[0]: filter.urlRewrite must be nil if the filter.type is not URLRewrite',
  ],
  'a path modifier of the wrong type': [
    route('  rules:\n    - filters:\n        - type: URLRewrite\n          urlRewrite: {path: {type: ReplaceFullPath, replacePrefixMatch: /a}}'),
    "9: spec.rules[0].filters[0].urlRewrite.path: replaceFullPath must be specified when type is set to 'ReplaceFullPath'",
  ],
  'a duplicate listener name': [
    gateway('{name: a, port: 80, protocol: HTTP}\n    - {name: a, port: 81, protocol: HTTP}'),
    '9: spec.listeners[1]: name ["a"] is already used by an earlier item; items must differ',
  ],
  'an empty spec': [route(''), '5: spec: is required and empty; fill it in'],
  'a required field without a value': [gateway('{name: a, port: , protocol: HTTP}'), '8: spec.listeners[0].port: is required and empty; fill it in'],
  'an empty name': ['apiVersion: v1\nkind: Secret\nmetadata: {name: ""}', '3: metadata.name: must not be empty'],
  'a name in upper case': [
    'apiVersion: v1\nkind: Service\nmetadata:\n  name: Web_1',
    '4: metadata.name: "Web_1" is not a name that Service can have; use lower-case letters, digits and -',
  ],
  'an invalid namespace': [
    'apiVersion: v1\nkind: Secret\nmetadata: {name: a.b, namespace: a.b}',
    '3: metadata.namespace: "a.b" is not a name of a namespace; use lower-case letters, digits and -',
  ],
  'a redirect with backends': [
    route('  rules:\n    - filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]\n      backendRefs: [{name: a, port: 80}]'),
    '7: spec.rules[0]: RequestRedirect filter must not be used together with backendRefs',
  ],
  'a backend timeout longer than the request timeout': [
    route('  rules:\n    - timeouts: {request: 1s, backendRequest: 1001ms}'),
    '7: spec.rules[0].timeouts: backendRequest timeout cannot be longer than request timeout',
  ],
  'a duplicate parentRef': [
    route('  parentRefs:\n    - name: g\n    - name: g'),
    '8: spec.parentRefs[1]: sectionName or port must be unique when parentRefs includes 2 or more references to the same parent',
  ],
  'a duplicate rule name': [route('  rules:\n    - name: a\n    - name: a'), '8: spec.rules[1]: Rule name must be unique within the route'],
  'tls on an HTTP listener': [
    gateway('{name: a, port: 80, protocol: HTTP, tls: {mode: Passthrough}}'),
    "8: spec.listeners[0]: tls must not be specified for protocols ['HTTP', 'TCP', 'UDP']",
  ],
  'Passthrough on an HTTPS listener': [
    gateway('{name: a, port: 80, protocol: HTTPS, tls: {mode: Passthrough}}'),
    '8: spec.listeners[0]: tls mode must be Terminate for protocol HTTPS',
  ],
  'a hostname on a TCP listener': [
    gateway('{name: a, port: 80, protocol: TCP, hostname: a.b}'),
    "8: spec.listeners[0]: hostname must not be specified for protocols ['TCP', 'UDP']",
  ],
  'an address that is not one': [
    'apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: g}\nspec:\n  gatewayClassName: proxy\n  addresses: [{value: a.example.com}]\n  listeners: [{name: a, port: 80, protocol: HTTP}]',
    '6: spec.addresses[0].value: "a.example.com" is not valid; it must be ipv4 or ipv6',
  ],
  'a Secret entry that is not base64': [
    'apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata:\n  key: "p@ss"',
    '5: data.key: is not base64; write plain text under stringData',
  ],
  'a policy without a section': [
    'apiVersion: proxy.dev/v1alpha1\nkind: ProxyPolicy\nmetadata: {name: a}\nspec:\n  targetRefs: [{group: "", kind: Service, name: a}]',
    '4: spec: at least one of the fields in [traffic frontend backend] must be set',
  ],
  'a policy with both kinds of targets': [
    'apiVersion: proxy.dev/v1alpha1\nkind: ProxyPolicy\nmetadata: {name: a}\nspec:\n  targetRefs: [{group: "", kind: Service, name: a}]\n  targetSelectors: [{group: "", kind: Service, matchLabels: {}}]\n  backend: {http: {}}',
    '4: spec: exactly one of the fields in [targetRefs targetSelectors] must be set',
  ],
  'an unknown field with two letters swapped': [
    'apiVersion: proxy.dev/v1alpha1\nkind: ProxyPolicy\nmetadata:\n  name: p\nspec:\n  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: g}]\n  traffic: {csfr: {}}',
    '7: spec.traffic.csfr: unknown field; did you mean csrf?',
  ],
  'an unknown field deep in a policy': [
    'apiVersion: proxy.dev/v1alpha1\nkind: ProxyPolicy\nmetadata: {name: a}\nspec:\n  targetRefs: [{group: "", kind: Service, name: a}]\n  backend:\n    http:\n      requestTimout: 1s',
    '8: spec.backend.http.requestTimout: unknown field; did you mean requestTimeout?',
  ],
  ...Object.fromEntries(
    (
      [
        [
          'a policy on a TCPRoute',
          '{group: gateway.networking.k8s.io, kind: TCPRoute, name: a}',
          'backend: {http: {}}',
          '5: spec.targetRefs[0]: may only reference Service,',
        ],
        [
          'a frontend policy on a route',
          '{group: gateway.networking.k8s.io, kind: HTTPRoute, name: a}',
          'frontend: {accessLog: {}}',
          '6: spec.frontend: frontend can only target a Gateway',
        ],
        [
          'a frontend policy on a listener',
          '{group: gateway.networking.k8s.io, kind: Gateway, name: a, sectionName: b}',
          'frontend: {accessLog: {}}',
          '6: spec.frontend: frontend may only target a Gateway, not a listener',
        ],
        [
          'a traffic policy on a Service',
          '{group: "", kind: Service, name: a}',
          'traffic: {csrf: {}}',
          '6: spec.traffic: traffic can only target Gateway, ListenerSet, HTTPRoute, GRPCRoute or InferencePool',
        ],
        [
          'a PreRouting policy on a route',
          '{group: gateway.networking.k8s.io, kind: HTTPRoute, name: a}',
          'traffic: {phase: PreRouting, cors: {}}',
          '6: spec.traffic.phase: phase PreRouting can only target',
        ],
        [
          'a PreRouting policy with a rate limit',
          '{group: gateway.networking.k8s.io, kind: Gateway, name: a}',
          'traffic: {phase: PreRouting, rateLimit: {local: [{requests: 1, unit: Hours}]}}',
          '6: spec.traffic: phase PreRouting only supports [authorization transformation',
        ],
        [
          'a port of a Service by name',
          '{group: "", kind: Service, name: a, sectionName: http}',
          'backend: {http: {}}',
          '5: spec.targetRefs[0].sectionName: sectionName of a Service must be a numeric port from 1 to 65535',
        ],
        [
          'an MCP policy on a part of a backend',
          '{group: proxy.dev, kind: ProxyBackend, name: a, sectionName: b}',
          'backend: {mcp: {authorization: {policy: {matchExpressions: ["true"]}}}}',
          '6: spec.backend.mcp: backend.mcp may not',
        ],
        [
          'targets of two kinds',
          '{group: "", kind: Service, name: a}, {group: proxy.dev, kind: ProxyBackend, name: b}',
          'backend: {http: {}}',
          '5: spec.targetRefs: only one Kind of target may be used in one policy',
        ],
      ] as const
    ).map(([sentence, targets, body, finding]) => [
      sentence,
      [
        `apiVersion: proxy.dev/v1alpha1\nkind: ProxyPolicy\nmetadata: {name: a}\nspec:\n  targetRefs: [${targets}]\n  ${body}`,
        new RegExp(`^${finding.replaceAll(/[.[\]()]/g, String.raw`\$&`)}`),
      ] as [string, RegExp],
    ]),
  ),
  'a budget of tokens with a quota service': [
    'apiVersion: proxy.dev/v1alpha1\nkind: ProxyPolicy\nmetadata: {name: a}\nspec:\n  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: a}]\n  traffic: {budgets: [{name: b, limits: [{tokens: 5, window: Day}], quotaService: {backendRef: {name: q, port: 1}, domain: d}}]}',
    '6: spec.traffic.budgets[0]: with quotaService, limits must be one limit of requests: the service assigns nothing else; use another budget for usd and tokens',
  ],
  'a budget in a store with a quota service': [
    'apiVersion: proxy.dev/v1alpha1\nkind: ProxyPolicy\nmetadata: {name: a}\nspec:\n  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: a}]\n  traffic: {budgets: [{name: b, limits: [{requests: 5, window: Day}], store: Redis, quotaService: {backendRef: {name: q, port: 1}, domain: d}}]}',
    '6: spec.traffic.budgets[0]: with quotaService, store and alertAt must not be set: the service counts',
  ],
  'a quota service whose bucket has the name of the key': [
    'apiVersion: proxy.dev/v1alpha1\nkind: ProxyPolicy\nmetadata: {name: a}\nspec:\n  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: a}]\n  traffic: {budgets: [{name: b, limits: [{requests: 5, window: Day}], quotaService: {backendRef: {name: q, port: 1}, domain: d, bucket: {key: a}}}]}',
    '6: spec.traffic.budgets[0].quotaService: bucket must not have the entry that keyName names, which is the value of key',
  ],
  ...Object.fromEntries(
    [
      'https://a.example.com',
      'a.example.com:443',
      'a.example.com/v1',
      'a example.com',
      ' a.example.com',
      'user@a.example.com',
      'a.example.com?b',
      '[2001:db8::1]',
    ].flatMap((host) =>
      (
        [
          ['static', `static: {host: "${host}", port: 1}`, 'static.host'],
          ['a2a', `a2a: {host: "${host}", port: 1}`, 'a2a.host'],
          ['mcp', `mcp: {targets: [{name: a, static: {host: "${host}", port: 1}}]}`, 'mcp.targets[0].static.host'],
          ['ai', `ai: {provider: {openai: {}, host: "${host}", port: 1}}`, 'ai.provider.host'],
        ] as const
      ).map(([kind, spec, field]): [string, [string, string]] => [
        `${kind} with the host ${JSON.stringify(host)}`,
        [
          `apiVersion: proxy.dev/v1alpha1\nkind: ProxyBackend\nmetadata: {name: a}\nspec:\n  ${spec}`,
          `5: spec.${field}: ${JSON.stringify(host)} is not valid; write a host name or an IP address, without scheme, user, port and path`,
        ],
      ]),
    ),
  ),
  ...Object.fromEntries(
    ['10.0.0.1:0', '10.0.0.1:70000', '10.0.0.1;10.0.0.2', 'http://10.0.0.1', '10.0.0.1,,10.0.0.2', 'a b', '10.0.0.1:http', '[::1'].map(
      (text): [string, [string, string]] => [
        `the annotation for endpoints with ${JSON.stringify(text)}`,
        [
          `apiVersion: v1\nkind: Service\nmetadata:\n  name: a\n  annotations:\n    proxy.dev/endpoints: "${text}"\nspec: {ports: [{port: 80}]}`,
          `6: metadata.annotations.proxy.dev/endpoints: ${JSON.stringify(text)} is not valid; write addresses such as 10.0.0.1, 10.0.0.2:8080 or api.example.com, separated by commas`,
        ],
      ],
    ),
  ),
  'a backend of two types': [
    'apiVersion: proxy.dev/v1alpha1\nkind: ProxyBackend\nmetadata: {name: a}\nspec: {static: {host: a, port: 1}, dynamicForwardProxy: {}}',
    '4: spec: exactly one of the fields in [ai static dynamicForwardProxy mcp cloudBackend a2a] must be set',
  ],
}

describe('a manifest with a mistake is reported at its line', () => {
  test.each(Object.entries(mistakes))('%s', (_, [manifest, finding]) => {
    const { items, findings } = readChunk(manifest)
    const texts = findings.map(({ line, field, message }) => `${line}: ${field}: ${withoutCodes(message)}`)
    expect(findings.filter(({ message }) => !/ \[PX20\d\d\]$/.test(message))).toEqual([])
    expect(texts).toEqual(expect.arrayContaining([typeof finding === 'string' ? finding : expect.stringMatching(finding)]))
    expect(findings.every(({ severity }) => severity === 'error')).toBe(true)
    expect(items.every((item) => item.object === undefined)).toBe(true)
  })
})

describe('a manifest of a kind that the operator does not read', () => {
  test.each([
    ['apps/v1', 'Deployment'],
    ['v1', 'ServiceAccount'],
    ['gateway.networking.k8s.io/v1alpha2', 'UDPRoute'],
    ['example.com/v1', 'Gateway'],
  ])('%s %s is noted and ignored', (apiVersion, kind) => {
    const { items, findings } = readChunk(`apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: a}`)
    expect(items).toEqual([])
    expect(findings.map(({ severity }) => severity)).toEqual(['note'])
  })

  test('a document of comments has no objects and no findings', () =>
    expect(readChunk('# nothing here\n')).toEqual({ items: [], findings: [], isUnreadable: false }))
})

describe('a host and endpoints that are valid', () => {
  test.each(['a', 'a.example.com', 'A.example.com.', 'my_host', '10.0.0.1', '2001:db8::1', '::1', '::ffff:10.0.0.1'])('host %s', (host) => {
    const manifest = { apiVersion: 'proxy.dev/v1alpha1', kind: 'ProxyBackend', metadata: { name: 'a' }, spec: { static: { host, port: 1 } } }
    expect(readChunk(JSON.stringify(manifest)).findings).toEqual([])
  })

  test.each(['', '10.0.0.1', '10.0.0.1, a.example.com:8080', '2001:db8::1,[::1]:80', '[::1]'])('endpoints %j', (endpoints) => {
    const metadata = { name: 'a', annotations: { 'proxy.dev/endpoints': endpoints } }
    expect(readChunk(JSON.stringify({ apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [{ port: 80 }] } })).findings).toEqual([])
  })
})

describe('a valid manifest, completed as by an API server,', () => {
  const objectOf = (manifest: string): unknown => readChunk(manifest).items[0]?.object

  test('gets namespace, generation, version and defaults', () => {
    expect(
      objectOf(
        'apiVersion: gateway.networking.k8s.io/v1beta1\nkind: HTTPRoute\nmetadata: {name: r}\nspec:\n  parentRefs: [{name: g}]\n  rules: [{backendRefs: [{name: s, port: 80}]}]',
      ),
    ).toEqual({
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'HTTPRoute',
      metadata: { name: 'r', namespace: 'default', generation: 1, creationTimestamp: '' },
      spec: {
        parentRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'g' }],
        rules: [{ matches: [{ path: { type: 'PathPrefix', value: '/' } }], backendRefs: [{ group: '', kind: 'Service', name: 's', port: 80, weight: 1 }] }],
      },
    })
  })

  test('has stringData in data, where it takes precedence', () => {
    expect(objectOf('apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: YQ==, b: Yg==}\nstringData: {b: new}')).toMatchObject({
      data: { a: 'YQ==', b: 'bmV3' },
    })
  })

  test.each<[string, object, boolean]>([
    ['entries of others', { parents: [{ controllerName: 'example.com/other' }], conditions: [] }, true],
    ['an entry that is empty', { parents: [null] }, false],
    ['entries that are not a list', { ancestors: {} }, false],
  ])('a status with %s', (_, status, isKept) => {
    const found = objectOf(JSON.stringify({ apiVersion: 'gateway.networking.k8s.io/v1', kind: 'HTTPRoute', metadata: { name: 'r' }, spec: {}, status }))
    expect((found as { status?: object }).status).toEqual(isKept ? status : undefined)
  })

  test('contributes the items of a List, each reported at its line', () => {
    const { items, findings } = readChunk(
      'apiVersion: v1\nkind: List\nitems:\n  - apiVersion: v1\n    kind: Namespace\n    metadata: {name: a}\n  - apiVersion: v1\n    kind: Secret\n    metadata: {name: b}\n    date: {}',
    )
    expect(items.map(({ id }) => id)).toEqual(['Namespace//a', 'Secret/default/b'])
    expect(findings).toEqual([{ severity: 'error', line: 10, column: 5, field: 'date', message: 'unknown field; did you mean data? [PX2003]' }])
  })

  test('may use YAML merge keys and anchors', () => {
    expect(objectOf('apiVersion: v1\nkind: ConfigMap\nmetadata: &m {name: a}\ndata:\n  <<: {x: "1"}\n  y: "2"')).toMatchObject({ data: { x: '1', y: '2' } })
  })
})

describe('a finding has no credential of the manifest:', () => {
  const SECRET = 'hunter2-correct-horse'
  const NUMBER = 8675309867530
  const policy = (section: string): string =>
    `apiVersion: proxy.dev/v1alpha1\nkind: ProxyPolicy\nmetadata: {name: a}\nspec:\n  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: g}]\n  ${section}`
  test.each([
    ['a key that is a number', policy(`backend: {auth: {key: ${NUMBER}}}`)],
    ['a key that is a list', policy(`backend: {auth: {key: [${SECRET}]}}`)],
    ['users that are no list', policy(`traffic: {basicAuthentication: {users: "ann:${SECRET}"}}`)],
    ['a header', policy(`traffic: {headerModifiers: {request: {set: [{name: x-api-key, value: ${NUMBER}}]}}}`)],
    ['a header in an unknown place', policy(`traffic: {headerModifiers: {request: {set: {name: x-api-key, value: ${SECRET}}}}}`)],
    ['an alias', policy(`backend: {auth: {key: *${SECRET}}}`)],
    ['a tag', policy(`backend: {auth: {key: !${SECRET}}}`)],
    ['a block', `a: |${SECRET}`],
  ])('%s', (_, text) => {
    const messages = readChunk(text).findings.map(({ message }) => message)
    expect(messages).not.toEqual([])
    for (const secret of [SECRET, String(NUMBER)]) expect(messages.join('\n')).not.toContain(secret)
  })
})
