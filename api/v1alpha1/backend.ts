import { atLeastOneOf, object, ref, type Definitions, type Schema } from '../schema.ts'

const simple: Readonly<Record<string, Schema>> = {
  tcp: ref('BackendTCP'),
  tls: ref('BackendTLS'),
  http: ref('BackendHTTP'),
  tunnel: ref('BackendTunnel'),
  transformation: ref('Transformation', 'Changes to requests to this backend and to its responses.'),
  auth: ref('BackendAuth'),
  health: ref('Health'),
}
const ai = { ai: ref('BackendAI') }
const mcp = { mcp: ref('BackendMCP') }

const variant = (description: string, fields: Readonly<Record<string, Schema>>): Schema =>
  object(description, fields, [], [atLeastOneOf(...Object.keys(fields))])

export const backendSectionDefinitions: Definitions = {
  BackendFull: variant(
    'Policies for connections to backends. They merge field by field: Gateway < Listener < Route < Route rule < Backend or Service < the backend’s own policies.',
    { ...simple, loadBalancer: ref('LoadBalancer'), ...ai, ...mcp },
  ),
  BackendSimple: variant('Policies for connections to one service.', simple),
  BackendWithAI: variant('Policies for connections to one LLM provider.', { ...simple, ...ai }),
  BackendWithMCP: variant('Policies for connections to one MCP target.', { ...simple, ...mcp }),
}
