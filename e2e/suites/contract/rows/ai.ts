import {
  backend,
  backendPolicy,
  BIG,
  DUPLICATE,
  entries,
  FEW,
  LONG,
  MANY,
  one,
  PATTERN,
  repeat,
  REQUIRED,
  service,
  SHORT,
  SMALL,
  some,
  text,
  UNSUPPORTED,
  type Row,
} from './row.ts'

const provider = (section: object) => backend({ ai: { provider: section } })
const groups = (...list: object[][]) => backend({ ai: { groups: list.map((providers) => ({ providers })) } })
const named = (name: string, more: object = {}) => ({ name, providerA: {}, ...more })
const policies = (section: object) => backend({ ai: { provider: { providerA: {} } }, policies: { ai: section } })
const request = (guard: object) => policies({ promptGuard: { request: [guard] } })
const response = (guard: object) => policies({ promptGuard: { response: [guard] } })
const regex = { matches: ['a+'], builtins: ['Ssn', 'CreditCard', 'PhoneNumber', 'Email', 'CaSin'], action: 'Reject' }
const guardrails = { identifier: 'i', version: '1', region: 'us-east-1' }
const armor = { templateId: 't', projectId: 'p' }
const oneProvider = one('providerA', 'providerB', 'providerC', 'providerD', 'providerE', 'providerF')
const requestGuards = one('regex', 'webhook', 'moderationApi', 'cloudGuardrails', 'modelArmor')
const responseGuards = one('regex', 'webhook', 'cloudGuardrails', 'modelArmor')
const at = 'spec.ai.provider'
const guardAt = 'spec.policies.ai.promptGuard'

export const aiRows: Row[] = [
  ...['providerA', 'providerC', 'providerD'].flatMap((name): Row[] => [
    [`${name} without model`, provider({ [name]: {} })],
    [`${name} with model`, provider({ [name]: { model: 'm' } })],
    [`${name} with an empty model`, provider({ [name]: { model: '' } }), `${at}.${name}.model`, SHORT],
  ]),
  ['providerB with endpoint', provider({ providerB: { endpoint: 'https://x.openai.azure.com' } })],
  ['providerB with v1', provider({ providerB: { endpoint: 'x', apiVersion: 'v1' } })],
  ['providerB with a dated version and deployment', provider({ providerB: { endpoint: 'x', apiVersion: '2024-10-21', deploymentName: 'd' } })],
  [
    'providerB with a dated version and no deployment',
    provider({ providerB: { endpoint: 'x', apiVersion: '2024-10-21' } }),
    `${at}.providerB.deploymentName`,
    'deploymentName is required for this apiVersion',
  ],
  ['providerB without endpoint', provider({ providerB: {} }), `${at}.providerB.endpoint`, REQUIRED],
  [
    'providerB with an apiVersion of 65',
    provider({ providerB: { endpoint: 'x', apiVersion: text(65), deploymentName: 'd' } }),
    `${at}.providerB.apiVersion`,
    LONG,
  ],
  ['providerE', provider({ providerE: { projectId: 'p', region: 'global', model: 'm' } })],
  ['providerE without projectId', provider({ providerE: { region: 'r' } }), `${at}.providerE.projectId`, REQUIRED],
  ['providerE without region', provider({ providerE: { projectId: 'p' } }), `${at}.providerE.region`, REQUIRED],
  ['providerE with a projectId of 65', provider({ providerE: { projectId: text(65), region: 'r' } }), `${at}.providerE.projectId`, LONG],
  ['providerF', provider({ providerF: { region: 'eu-west-1', model: 'm', guardrail: { identifier: 'i', version: '1' } } })],
  ['providerF with an upper-case region', provider({ providerF: { region: 'EU' } }), `${at}.providerF.region`, PATTERN],
  ['providerF with a region of 64', provider({ providerF: { region: text(64) } }), `${at}.providerF.region`, LONG],
  ['providerF with a guardrail without version', provider({ providerF: { guardrail: { identifier: 'i' } } }), `${at}.providerF.guardrail.version`, REQUIRED],
  ['providerF with a guardrail without identifier', provider({ providerF: { guardrail: { version: '1' } } }), `${at}.providerF.guardrail.identifier`, REQUIRED],
  ['no provider kind', provider({}), at, oneProvider],
  ['two provider kinds', provider({ providerA: {}, providerC: {} }), at, oneProvider],
  ['host and port and path', provider({ providerA: {}, host: 'h', port: 1, path: '/v1' })],
  ['path alone', provider({ providerA: {}, path: '/v1' })],
  ['host without port', provider({ providerA: {}, host: 'h' }), at, 'must both be set together'],
  ['port without host', provider({ providerA: {}, port: 1 }), at, 'must both be set together'],
  ['provider port 65536', provider({ providerA: {}, host: 'h', port: 65536 }), `${at}.port`, BIG],
  ['provider path of 1025', provider({ providerA: {}, path: text(1025) }), `${at}.path`, LONG],
  ['a lone provider with policies', provider({ providerA: {}, policies: { tls: {} } }), '', 'unknown field "spec.ai.provider.policies"'],
  ['groups', groups([named('a'), named('b', { policies: { auth: { key: 'k' }, ai: { modelAliases: { x: 'y' } } } })], [named('c')])],
  ['neither provider nor groups', backend({ ai: {} }), 'spec.ai', one('provider', 'groups')],
  ['provider and groups', backend({ ai: { provider: { providerA: {} }, groups: [{ providers: [named('a')] }] } }), 'spec.ai', one('provider', 'groups')],
  ['no groups', backend({ ai: { groups: [] } }), 'spec.ai.groups', FEW],
  ['8 groups of 16 providers', groups(...repeat(8, (g) => repeat(16, (p) => named(`p${g}-${p}`))))],
  ['9 groups', groups(...repeat(9, (g) => [named(`p${g}`)])), 'spec.ai.groups', MANY],
  ['a group without providers', backend({ ai: { groups: [{}] } }), 'spec.ai.groups[0].providers', REQUIRED],
  ['a group with no providers', groups([]), 'spec.ai.groups[0].providers', FEW],
  ['a group of 17 providers', groups(repeat(17, (p) => named(`p${p}`))), 'spec.ai.groups[0].providers', MANY],
  ['one name twice in a group', groups([named('a'), named('a')]), 'spec.ai.groups[0].providers[1]', DUPLICATE],
  ['one name in two groups', groups([named('a')], [named('b')], [named('a')]), 'spec.ai.groups', 'must be unique across groups'],
  ['a named provider without name', groups([{ providerA: {} }]), 'spec.ai.groups[0].providers[0].name', REQUIRED],
  ['a named provider with an upper-case name', groups([named('A')]), 'spec.ai.groups[0].providers[0].name', PATTERN],
  ['a named provider of two kinds', groups([named('a', { providerC: {} })]), 'spec.ai.groups[0].providers[0]', oneProvider],
  ['a named provider with empty policies', groups([named('a', { policies: {} })]), 'spec.ai.groups[0].providers[0].policies', 'at least one of the fields'],
  ['a named provider with mcp policies', groups([named('a', { policies: { mcp: {} } })]), '', 'unknown field'],

  [
    'ai policies with everything',
    policies({
      prompt: { prepend: [{ role: 'SYSTEM', content: 'c' }], append: [{ role: 'USER', content: '' }] },
      defaults: [{ field: 'f', value: { a: [1] } }],
      overrides: [
        { field: 'f', value: 'text' },
        { field: 'g', value: 1 },
        { field: 'h', value: false },
      ],
      transformations: [{ field: 'f', expression: '1' }],
      modelAliases: entries(64, 'm'),
      promptCaching: { cacheTools: true, minTokens: 0 },
      routes: { '/v1/chat/completions': 'Completions', '*': 'Passthrough' },
    }),
  ],
  ['empty ai policies', policies({}), 'spec.policies.ai', 'at least one of the fields'],
  ['empty ai policies in a ProxyPolicy', backendPolicy({ ai: {} }), 'spec.backend.ai', 'at least one of the fields'],
  ['a message without role', policies({ prompt: { prepend: [{ content: 'c' }] } }), 'spec.policies.ai.prompt.prepend[0].role', REQUIRED],
  ['a message without content', policies({ prompt: { append: [{ role: 'user' }] } }), 'spec.policies.ai.prompt.append[0].content', REQUIRED],
  ...['defaults', 'overrides'].flatMap((list): Row[] => [
    [`64 ${list}`, policies({ [list]: repeat(64, (i) => ({ field: `f${i}`, value: i })) })],
    [`65 ${list}`, policies({ [list]: repeat(65, (i) => ({ field: `f${i}`, value: i })) }), `spec.policies.ai.${list}`, MANY],
    [`no ${list}`, policies({ [list]: [] }), `spec.policies.ai.${list}`, FEW],
    [`${list} without value`, policies({ [list]: [{ field: 'f' }] }), `spec.policies.ai.${list}[0].value`, REQUIRED],
    [`${list} with value null`, policies({ [list]: [{ field: 'f', value: null }] }), `spec.policies.ai.${list}[0].value`, REQUIRED],
    [`${list} without field`, policies({ [list]: [{ value: 1 }] }), `spec.policies.ai.${list}[0].field`, REQUIRED],
  ]),
  ['65 transformations', policies({ transformations: repeat(65, () => ({ field: 'f', expression: '1' })) }), 'spec.policies.ai.transformations', MANY],
  ['no transformations', policies({ transformations: [] }), 'spec.policies.ai.transformations', FEW],
  ['a transformation without expression', policies({ transformations: [{ field: 'f' }] }), 'spec.policies.ai.transformations[0].expression', REQUIRED],
  ['65 model aliases', policies({ modelAliases: entries(65, 'm') }), 'spec.policies.ai.modelAliases', MANY],
  ['a negative minTokens', policies({ promptCaching: { minTokens: -1 } }), 'spec.policies.ai.promptCaching.minTokens', SMALL],
  ...['Completions', 'Messages', 'Models', 'Passthrough', 'Detect', 'Responses', 'TokenCount', 'Embeddings', 'Realtime'].map((type): Row => [
    `route type ${type}`,
    policies({ routes: { '/x': type } }),
  ]),
  ['an unknown route type', policies({ routes: { '/x': 'Chat' } }), 'spec.policies.ai.routes./x', UNSUPPORTED],

  ['an empty promptGuard', policies({ promptGuard: {} }), guardAt, some('request', 'response')],
  ['a request guard of nothing', request({}), `${guardAt}.request[0]`, requestGuards],
  ['a request guard of two kinds', request({ regex, moderationApi: {} }), `${guardAt}.request[0]`, requestGuards],
  ['a response guard of nothing', response({ response: { message: 'm' } }), `${guardAt}.response[0]`, responseGuards],
  ['a response guard of two kinds', response({ regex, modelArmor: armor }), `${guardAt}.response[0]`, responseGuards],
  ['moderationApi on the response', response({ moderationApi: {} }), '', 'unknown field'],
  [
    '8 request guards of every kind',
    policies({
      promptGuard: {
        request: [
          { regex },
          { webhook: { backendRef: service } },
          { moderationApi: { model: 'm', policies: { auth: { key: 'k' } } } },
          { cloudGuardrails: guardrails },
          { modelArmor: armor },
          { regex },
          { regex },
          { regex },
        ],
      },
    }),
  ],
  ['9 request guards', policies({ promptGuard: { request: repeat(9, () => ({ regex })) } }), `${guardAt}.request`, MANY],
  ['9 response guards', policies({ promptGuard: { response: repeat(9, () => ({ regex })) } }), `${guardAt}.response`, MANY],
  ['no request guards', policies({ promptGuard: { request: [] } }), `${guardAt}.request`, FEW],
  ['no response guards', policies({ promptGuard: { response: [] } }), `${guardAt}.response`, FEW],
  ['a custom response', request({ regex, response: { message: 'no', statusCode: 599 } })],
  ['an empty custom response', request({ regex, response: {} }), `${guardAt}.request[0].response`, some('message', 'statusCode')],
  ['a custom response of 199', request({ regex, response: { statusCode: 199 } }), `${guardAt}.request[0].response.statusCode`, SMALL],
  ['a custom response of 600', response({ regex, response: { statusCode: 600 } }), `${guardAt}.response[0].response.statusCode`, BIG],
  ['a regex of nothing', request({ regex: {} }), `${guardAt}.request[0].regex`, some('matches', 'builtins')],
  ['an empty pattern', request({ regex: { matches: [''] } }), `${guardAt}.request[0].regex.matches[0]`, SHORT],
  ['a pattern of 1025', request({ regex: { matches: [text(1025)] } }), `${guardAt}.request[0].regex.matches[0]`, LONG],
  ['an unknown built-in', request({ regex: { builtins: ['Iban'] } }), `${guardAt}.request[0].regex.builtins[0]`, UNSUPPORTED],
  ['an unknown regex action', request({ regex: { ...regex, action: 'Log' } }), `${guardAt}.request[0].regex.action`, UNSUPPORTED],
  [
    'a webhook with header matches',
    request({
      webhook: {
        backendRef: service,
        forwardHeaderMatches: [
          { name: 'x-a', value: 'v' },
          { type: 'RegularExpression', name: 'x-b', value: '.*' },
        ],
      },
    }),
  ],
  ['a webhook without backendRef', request({ webhook: {} }), `${guardAt}.request[0].webhook.backendRef`, REQUIRED],
  [
    'a webhook at a Service without port',
    request({ webhook: { backendRef: { name: 's' } } }),
    `${guardAt}.request[0].webhook.backendRef.port`,
    'must have port',
  ],
  [
    'a webhook header match without value',
    request({ webhook: { backendRef: service, forwardHeaderMatches: [{ name: 'x' }] } }),
    `${guardAt}.request[0].webhook.forwardHeaderMatches[0].value`,
    REQUIRED,
  ],
  [
    'a webhook header match of unknown type',
    request({ webhook: { backendRef: service, forwardHeaderMatches: [{ name: 'x', value: 'v', type: 'Prefix' }] } }),
    `${guardAt}.request[0].webhook.forwardHeaderMatches[0].type`,
    UNSUPPORTED,
  ],
  ...Object.keys(guardrails).map((field): Row => [
    `cloudGuardrails without ${field}`,
    request({ cloudGuardrails: { ...guardrails, [field]: undefined } }),
    `${guardAt}.request[0].cloudGuardrails.${field}`,
    REQUIRED,
  ]),
  ...Object.keys(armor).map((field): Row => [
    `modelArmor without ${field}`,
    response({ modelArmor: { ...armor, [field]: undefined } }),
    `${guardAt}.response[0].modelArmor.${field}`,
    REQUIRED,
  ]),
  [
    'guard policies with two kinds of auth',
    request({ modelArmor: { ...armor, policies: { auth: { key: 'k', cloudC: {} } } } }),
    `${guardAt}.request[0].modelArmor.policies.auth`,
    'exactly one of the fields',
  ],
  ['empty guard policies', request({ moderationApi: { policies: {} } }), `${guardAt}.request[0].moderationApi.policies`, 'at least one of the fields'],
  ['guard policies with ai', request({ moderationApi: { policies: { ai: {} } } }), '', 'unknown field'],
]
