import { atLeastOneOf, choice, exactlyOneOf, keyedList, object, ref, type Definitions } from '../../schema.ts'
import { port } from '../shared.ts'

export const mcpBackendDefinitions: Definitions = {
  MCPBackend: object(
    'A backend that speaks the Model Context Protocol. Several targets are merged into one server; their tools, prompts and resources get the target name as prefix.',
    {
      targets: keyedList('name', ref('McpTargetSelector'), 'MCP servers.', 1, 32),
      sessionRouting: choice(
        ['Stateful', 'Stateless'],
        'Stateful: clients have a session (`mcp-session-id`) that stays on the same replica of each target. Stateless: each request has its own session with the target.',
        { default: 'Stateful' },
      ),
      failureMode: choice(
        ['FailClosed', 'FailOpen'],
        'Handling of a target that fails. FailClosed fails requests that need all targets; FailOpen returns the results of the other targets.',
        {
          default: 'FailClosed',
        },
      ),
      prefixMode: choice(
        ['Conditional', 'Always', 'Never'],
        'Whether names get the name of the target as prefix. Conditional: if there is more than one target. Never: names that several targets offer are omitted.',
        {
          default: 'Conditional',
        },
      ),
    },
    ['targets'],
  ),
  McpTargetSelector: object(
    'One or more MCP servers: exactly one of selector, static.',
    {
      name: ref('SectionName', 'Name, unique in the backend; a policy can target it by `sectionName`.'),
      selector: ref('McpSelector'),
      static: ref('McpTarget'),
    },
    ['name'],
    [exactlyOneOf('selector', 'static')],
  ),
  McpSelector: object(
    'Selects Services; their ports with appProtocol `proxy.dev/mcp` or `proxy.dev/mcp-sse` become targets. Policies for one of them: a ProxyPolicy that targets the Service.',
    {
      namespaces: ref('LabelSelector', 'Namespaces to look in. Not set: only that of the backend.'),
      services: ref('LabelSelector', 'Services to select.'),
    },
    [],
    [atLeastOneOf('namespaces', 'services')],
  ),
  McpTarget: object(
    'One MCP server at a fixed address. For Services in the cluster prefer selector.',
    {
      host: ref('ShortString', 'Host name or IP address.'),
      port: port('Port.'),
      path: ref('LongString', 'Path of the MCP endpoint. Default: /sse for SSE, /mcp for StreamableHTTP.'),
      protocol: choice(['StreamableHTTP', 'SSE'], 'Transport: StreamableHTTP, or the older HTTP with SSE.', { default: 'StreamableHTTP' }),
      policies: ref('BackendWithMCP', 'Policies for this target; they take precedence over those of the backend and of ProxyPolicies.'),
    },
    ['host', 'port'],
  ),
}
