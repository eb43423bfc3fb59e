import { anyJson, atLeastOneOf, choice, exactlyOneOf, keyedList, object, ref, set, string, type Definitions } from '../../schema.ts'
import { port } from '../shared.ts'

/** Longest name of a tool that MCP allows. */
const TOOL_NAME = { minLength: 1, maxLength: 128 }
const toolPatterns = (description: string) => set(string('Name of a tool as the server has it; `*` stands for any characters.', TOOL_NAME), description, 1, 128)

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
      toolNames: choice(
        ['Unchanged', 'Portable'],
        'Portable: clients see names of tools of at most 64 letters, digits, `_` and `-`, which all LLM APIs accept. Other names have `_` for other characters and end with a digest. Default: Unchanged.',
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
      tools: ref('McpTools'),
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
  McpTools: object(
    'Which tools of a server clients see, and how. Authorization rules, logs and metrics have the names of the server.',
    {
      include: toolPatterns('Only these tools are offered. Default: all.'),
      exclude: toolPatterns('These tools are not offered; stronger than include.'),
      overrides: keyedList('name', ref('McpToolOverride'), 'Changes of single tools.', 1, 64),
    },
    [],
    [atLeastOneOf('include', 'exclude', 'overrides')],
  ),
  McpToolOverride: object(
    'How clients see one tool.',
    {
      name: string('Name as the server has it, without the prefix of the target.', TOOL_NAME),
      rename: string('Name for clients; the prefix of the target is added to it. A tool of the server with this name is not offered.', {
        ...TOOL_NAME,
        pattern: '^[a-zA-Z0-9_.-]+$',
      }),
      description: string('Description for clients.', { minLength: 1, maxLength: 4096 }),
      arguments: keyedList(
        'name',
        ref('McpFixedArgument'),
        'Arguments that the gateway sets. Clients do not see them; values that clients send are replaced.',
        1,
        16,
      ),
    },
    ['name'],
    [atLeastOneOf('rename', 'description', 'arguments')],
  ),
  McpFixedArgument: object(
    'An argument with a fixed value: exactly one of value, expression.',
    {
      name: string('Name of the argument.', TOOL_NAME),
      value: anyJson('Value: any JSON but null.'),
      expression: ref('CELExpression', 'Value, computed from the request, for example `jwt.sub`. If it fails, so does the call.'),
    },
    ['name'],
    [exactlyOneOf('value', 'expression')],
  ),
}
