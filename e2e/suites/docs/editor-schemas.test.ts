import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { Ajv, type SchemaObject, type ValidateFunction } from 'ajv'
import { parse, parseAllDocuments } from 'yaml'
import { listFiles, readText } from './tree.ts'

// As the language server of YAML: no keyword of our own, no defaults, and `$schema` as the only information about the document.
const compile = (path: string): ValidateFunction => new Ajv({ allErrors: true, strict: false }).compile(JSON.parse(readFileSync(path, 'utf8')) as SchemaObject)
const manifest = compile('gen/v1alpha1/schema.json')
const config = compile('gen/config/file.schema.json')

function errorsOf(validate: ValidateFunction, value: unknown): string[] {
  validate(value)
  return (validate.errors ?? []).map(({ instancePath, message, params }) => {
    const field = (params as { additionalProperty?: string }).additionalProperty
    return `${instancePath} ${message}${field === undefined ? '' : `: ${field}`}`
  })
}

const API = 'proxy.dev/v1alpha1'
const isOurs = (value: unknown): boolean => typeof value === 'object' && value !== null && 'apiVersion' in value && value.apiVersion === API

describe('the schemas for editors accept', () => {
  const manifests = listFiles('e2e/examples/*/manifests.yaml').concat(listFiles('e2e/suites/install/*.yaml'))
  const documents = manifests.flatMap((path) =>
    parseAllDocuments(readText(path)).flatMap((document, index) => {
      const value: unknown = document.toJS()
      return isOurs(value) ? [[`${path}, document ${index + 1}`, value] as const] : []
    }),
  )

  test('the objects of more than 40 examples', () => {
    expect(documents.length).toBeGreaterThan(40)
    expect(documents.flatMap(([name, value]) => errorsOf(manifest, value).map((error) => `${name}: ${error}`))).toEqual([])
  })

  const files = listFiles('e2e/examples/*/config.yaml').concat(listFiles('e2e/examples/*/gateway.yaml'))
  test.each(files)('the config file %s', (path) => {
    expect(errorsOf(config, parse(readText(path)))).toEqual([])
  })

  test.each([
    ['a number', 'binds: [{ port: "${PORT}", listeners: [] }]'],
    ['a boolean', 'services: [{ key: n/s, ports: [{ port: 80, endpoints: [{ address: a, port: "${P:-80}", draining: "${D}" }] }] }]'],
    ['a text with a pattern', 'mcp: { a: { url: "${URL}", protocol: "${P}" } }'],
    ['a part of a text with a pattern', 'config: { connectionTerminationDeadline: "${SECONDS}s" }'],
    ['one of several values', 'binds: [{ port: 80, listeners: [{ protocol: "${PROTOCOL}" }] }]'],
    ['a key', 'llm:\n  models:\n    m:\n      openai:\n        apiKey: ${OPENAI_API_KEY}\n'],
  ])('a placeholder for %s', (_, text) => {
    expect(errorsOf(config, parse(text))).toEqual([])
  })
})

const model = (text: string): string => `llm: { models: { m: ${text} } }`
const listener = (text: string): string => `binds: [{ port: 80, listeners: [{ ${text} }] }]`
const route = (text: string): string => listener(`routes: [{ ${text} }]`)
const at = '/binds/0/listeners/0'

describe('the schema for config files rejects', () => {
  test.each<[sentence: string, text: string, error: string]>([
    ['an unknown section', 'lllm: {}', ' must NOT have additional properties: lllm'],
    ['a list', '[]', ' must be object'],
    ['text', 'llm', ' must be object'],
    ['a section of the wrong type', 'binds: x', '/binds must be array'],
    ['a bind without port', 'binds: [{ listeners: [] }]', "/binds/0 must have required property 'port'"],
    ['a bind without listeners', 'binds: [{ port: 80 }]', "/binds/0 must have required property 'listeners'"],
    ['a port that is text', 'binds: [{ port: http, listeners: [] }]', '/binds/0/port must be integer'],
    ['a port out of bounds', 'binds: [{ port: 70000, listeners: [] }]', '/binds/0/port must be <= 65535'],
    ['a misspelt field of a bind', 'binds: [{ port: 80, listeners: [], adress: x }]', '/binds/0 must NOT have additional properties: adress'],
    ['an unknown protocol', listener('protocol: UDP'), `${at}/protocol must be equal to one of the allowed values`],
    ['a misspelt field of tls', listener('tls: { certt: a }'), `${at}/tls must NOT have additional properties: certt`],
    [
      'an unknown path type',
      route('matches: [{ path: { type: Prefix, value: / } }]'),
      `${at}/routes/0/matches/0/path/type must be equal to one of the allowed values`,
    ],
    ['a match without value', route('matches: [{ path: { type: Exact } }]'), `${at}/routes/0/matches/0/path must have required property 'value'`],
    ['a timeout in words', route('timeouts: { request: 10 seconds }'), `${at}/routes/0/timeouts/request must match pattern "^([0-9]{1,5}(h|m|s|ms)){1,4}$"`],
    ['a timeout in both forms', route('timeouts: { request: 1s, requestMs: 1000 }'), `${at}/routes/0/timeouts must NOT be valid`],
    ['a status that is not retried', route('retry: { codes: [200] }'), `${at}/routes/0/retry/codes/0 must be >= 400`],
    ['a destination of two kinds', route("backends: [{ host: 'a:1', backend: b }]"), `${at}/routes/0/backends/0 must match exactly one schema in oneOf`],
    ['a negative weight', route("backends: [{ host: 'a:1', weight: -1 }]"), `${at}/routes/0/backends/0/weight must be >= 0`],
    ['a misspelt policy', route('policies: { rateLimits: {} }'), `${at}/routes/0/policies must NOT have additional properties: rateLimits`],
    ['a backend without name', "backends: [{ host: 'a:1' }]", "/backends/0 must have required property 'name'"],
    ['a log format that does not exist', 'config: { logging: { format: xml } }', '/config/logging/format must be equal to one of the allowed values'],
    ['no models', 'llm: {}', "/llm must have required property 'models'"],
    ['an empty list of models', 'llm: { models: {} }', '/llm/models must NOT have fewer than 1 properties'],
    ['a model without provider', model('{}'), '/llm/models/m must match exactly one schema in oneOf'],
    ['a model with two providers', model('{ openai: {}, anthropic: {} }'), '/llm/models/m must match exactly one schema in oneOf'],
    ['a misspelt provider', model('{ opnai: {} }'), '/llm/models/m must NOT have additional properties: opnai'],
    ['a misspelt key', model('{ openai: { apikey: a } }'), '/llm/models/m/openai must NOT have additional properties: apikey'],
    ['an empty key', model("{ openai: { apiKey: '' } }"), '/llm/models/m/openai/apiKey must NOT have fewer than 1 characters'],
    ['a key that is a number', model('{ openai: { apiKey: 1 } }'), '/llm/models/m/openai/apiKey must be string'],
    ['Azure OpenAI without endpoint', model('{ azureOpenAI: {} }'), "/llm/models/m/azureOpenAI must have required property 'endpoint'"],
    ['Vertex AI without project', model('{ vertexAI: { region: r } }'), "/llm/models/m/vertexAI must have required property 'projectId'"],
    ['a region with upper case', model('{ bedrock: { region: US } }'), '/llm/models/m/bedrock/region must match pattern "^[a-z0-9-]+$"'],
    ['a URL of another scheme', model("{ openai: { url: 'ftp://a' } }"), '/llm/models/m/openai/url must match pattern "^https?://"'],
    ['an MCP server with an empty command', 'mcp: { a: { command: [] } }', '/mcp/a/command must NOT have fewer than 1 items'],
    ['an MCP server as text', "mcp: { a: 'http://b' }", '/mcp/a must be object'],
    ['an unknown MCP transport', "mcp: { a: { url: 'http://b', protocol: stdio } }", '/mcp/a/protocol must be equal to one of the allowed values'],
    ['an unknown prefix mode', "mcp: { prefixMode: Sometimes, a: { url: 'http://b' } }", '/mcp/prefixMode must be equal to one of the allowed values'],
  ])('%s', (_, text, error) => {
    expect(errorsOf(config, parse(text))).toContain(error)
  })
})

describe('the schema for manifests rejects', () => {
  const object = (kind: string, spec: string): string => `{ apiVersion: ${API}, kind: ${kind}, metadata: { name: a }, spec: ${spec} }`
  const policy = (section: string): string =>
    object('ProxyPolicy', `{ targetRefs: [{ group: gateway.networking.k8s.io, kind: Gateway, name: g }], ${section} }`)
  test.each<[sentence: string, text: string, error: string]>([
    ['an object without kind', `{ apiVersion: ${API} }`, " must have required property 'kind'"],
    ['a misspelt kind', object('ProxyPolciy', '{}'), '/kind must be equal to one of the allowed values'],
    ['a misspelt section', policy('trafic: {}'), '/spec must NOT have additional properties: trafic'],
    ['a misspelt policy', policy('traffic: { timeout: {} }'), '/spec/traffic must NOT have additional properties: timeout'],
    [
      'a placeholder, which only config files have',
      policy('traffic: { timeouts: { request: "${T}" } }'),
      '/spec/traffic/timeouts/request must match pattern "^([0-9]{1,5}(h|m|s|ms)){1,4}$"',
    ],
    [
      'a backend of two kinds',
      object('ProxyBackend', '{ static: { host: a, port: 1 }, mcp: { targets: [] } }'),
      '/spec must match exactly one schema in oneOf',
    ],
    ['a port out of bounds', object('ProxyBackend', '{ static: { host: a, port: 0 } }'), '/spec/static/port must be >= 1'],
    ['an unknown level', object('ProxyParameters', '{ imag: {} }'), '/spec must NOT have additional properties: imag'],
  ])('%s', (_, text, error) => {
    expect(errorsOf(manifest, parse(text))).toContain(error)
  })
})
