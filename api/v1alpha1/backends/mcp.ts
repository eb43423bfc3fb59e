import { CONTAINER_IMAGE_PATTERN } from '../../image.ts'
import { anyJson, atLeastOneOf, atMostOneOf, choice, exactlyOneOf, keyedList, list, map, object, ref, set, string, type Definitions } from '../../schema.ts'
import { originPattern } from '../policies/cors.ts'
import { duration, port } from '../shared.ts'

/** Longest name of a tool that MCP allows. */
const TOOL_NAME = { minLength: 1, maxLength: 128 }
const toolPatterns = (description: string) => set(string('Name; `*` stands for any characters.', TOOL_NAME), description, 1, 128)

const grpcPattern = string('Pattern of a full name such as `shop.v1.Carts/Get*`; `*` is any text.', { minLength: 1, maxLength: 512, pattern: '^[\\w.*/]+$' })
const { message: oneSource } = exactlyOneOf('selector', 'static')

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
      toolSearch: choice(
        ['Disabled', 'Enabled'],
        'Enabled: clients see three tools, to search, describe and call those of the targets, so that many tools do not fill the context of a model. Default: Disabled.',
      ),
      toolPins: ref('McpToolPins'),
      allowOrigins: set(
        originPattern,
        'Origins of pages that may send requests, besides that of the Host, loopback origins if the Host is a loopback name, and those that a CORS policy of the route allows. Requests with another Origin, also `null`, get 403; those without Origin come from no page. Default: none.',
        1,
        64,
      ),
      views: keyedList('name', ref('McpView'), 'Parts of the backend, by path or host. With views, requests that match none get 404.', 1, 32),
    },
    ['targets'],
  ),
  McpToolPins: object(
    'Compares tools with digests that a user approved.',
    {
      configMapRef: ref('ConfigMapKeyReference', 'Pins, as `proxyctl mcp approve` writes them. If they are missing or broken, no tool is approved.'),
      action: choice(
        ['Audit', 'Hold', 'Block'],
        'New and changed tools. Audit: only log and metric. Hold: hidden until approved. Block: as Hold, and a target that changed or imitated an approved tool offers none.',
      ),
    },
    ['configMapRef', 'action'],
  ),
  McpView: object(
    'Some targets and tools, for requests with a path and host. The most specific host decides, then the longest path.',
    {
      name: ref('SectionName', 'Name, unique in the backend.'),
      path: string('Prefix of the path, in whole segments.', { minLength: 1, maxLength: 1024, pattern: '^/[^?#\\s]*$' }),
      hostname: string('Host, or `*.` and a domain.', { minLength: 1, maxLength: 253, pattern: '^(\\*\\.)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$' }),
      targets: toolPatterns('Names of targets. Default: all.'),
      tools: object(
        'Tools, by their names for clients, with prefix.',
        { include: toolPatterns('Default: all.'), exclude: toolPatterns('Stronger than include.') },
        [],
        [atLeastOneOf('include', 'exclude')],
      ),
    },
    ['name'],
    [atLeastOneOf('path', 'hostname')],
  ),
  McpTargetSelector: object(
    'One or more MCP servers: exactly one of selector, static, command. With openapi or grpc, a service of another kind: at static, or at the Service of its backendRef.',
    {
      name: ref('SectionName', 'Name, unique in the backend; a policy can target it by `sectionName`.'),
      selector: ref('McpSelector'),
      static: ref('McpTarget'),
      tools: ref('McpTools'),
      openapi: ref('McpOpenApi'),
      grpc: ref('McpGrpc'),
      command: list(
        string('Program, then arguments.', { maxLength: 4096 }),
        'A program that speaks MCP over stdio; each session has a process of its own. In a cluster only with image.',
        1,
        128,
      ),
      env: map(
        string('Value.', { maxLength: 32768 }),
        'Environment of command. In a cluster, that of the image and of overlays is added; in a config file there is no other, not even PATH.',
        1,
        128,
      ),
      image: string(
        'Container image that command runs in, as `registry/repository`, with a tag or a digest. The operator runs it as a Deployment in the namespace of the backend. Only in a cluster, and only if ProxyParameters list it in `mcp.images`.',
        { maxLength: 512, pattern: CONTAINER_IMAGE_PATTERN },
      ),
    },
    ['name'],
    [
      { ...atMostOneOf('selector', 'static', 'command'), message: oneSource },
      { ...atLeastOneOf('selector', 'static', 'command', 'openapi', 'grpc'), message: oneSource },
      { rule: '!has(self.env) || has(self.command)', message: 'env is that of command' },
      { rule: '!has(self.image) || has(self.command)', message: 'image needs command: the program of the image, with its arguments' },
      {
        rule: '!has(self.openapi) || (!has(self.selector) && !has(self.command) && has(self.static) != has(self.openapi.backendRef))',
        message: 'openapi needs exactly one of static and openapi.backendRef, and no selector',
      },
      {
        rule: "!has(self.openapi) || !has(self.static) || (!has(self.static.path) && (!has(self.static.protocol) || self.static.protocol == 'StreamableHTTP'))",
        message: 'path and protocol of static are those of an MCP server; set openapi.path',
      },
      {
        rule: '!has(self.grpc) || (!has(self.openapi) && !has(self.selector) && !has(self.command) && has(self.static) != has(self.grpc.backendRef))',
        message: 'grpc needs exactly one of static and grpc.backendRef, and neither openapi nor selector',
      },
      {
        rule: "!has(self.grpc) || !has(self.static) || (!has(self.static.path) && (!has(self.static.protocol) || self.static.protocol == 'StreamableHTTP'))",
        message: 'path and protocol of static are those of an MCP server; remove them',
      },
    ],
  ),
  McpOpenApi: object(
    'Makes an HTTP API, described by an OpenAPI 3.0 or 3.1 document, an MCP server: operations become tools. The document is no source of addresses: requests go to static or to backendRef only.',
    {
      configMapRef: ref(
        'ConfigMapKeyReference',
        'The document: a key of a ConfigMap in the namespace of the backend, in JSON or YAML. A key of `binaryData` may be compressed with gzip. A document that is missing or broken is reported in the status, and the target has no tools.',
      ),
      url: string(
        'The document: an http or https URL, or a path at the target, whose TLS settings apply. The operator fetches it, follows no redirects, and keeps the last document while fetches fail.',
        { minLength: 1, maxLength: 2048, pattern: '^(https?://[^\\s/?#@\\\\]+)?/[^\\s#\\\\]*$' },
      ),
      refreshInterval: duration('Time between fetches of url. Default: 5m.', 10_000),
      backendRef: ref('BackendObjectReference', 'The Service that serves the API, instead of static. Policies that target the Service apply.'),
      path: string('Base path of the API, for all operations. Default: the path of the first of `servers` of the document, or of the operation.', {
        minLength: 1,
        maxLength: 1024,
        pattern: '^/[^?#\\s]*$',
      }),
      include: list(ref('McpOpenApiMatch'), 'Operations that become tools: those that match any entry. Default: all.', 1, 64),
      exclude: list(ref('McpOpenApiMatch'), 'Operations that become no tools, though they match include.', 1, 64),
      response: ref(
        'CELExpression',
        'Result of a successful call, computed from the response of the API, such as `json(response.body).items`. Tools have no output schema then.',
      ),
      rename: map(
        string('Name of the tool.', { minLength: 1, maxLength: 64, pattern: '^[a-zA-Z0-9_-]+$' }),
        'Names of tools, by operationId, or by `METHOD /path` as in the document. Default: the operationId, or method and path.',
        1,
        1024,
      ),
    },
    [],
    [exactlyOneOf('configMapRef', 'url'), { rule: '!has(self.refreshInterval) || has(self.url)', message: 'refreshInterval is that of url' }],
  ),
  McpGrpc: object('Makes a gRPC server an MCP server: unary methods become tools.', {
    configMapRef: ref(
      'ConfigMapKeyReference',
      'The descriptor set: a key of `binaryData` of a ConfigMap, as `protoc --include_imports --descriptor_set_out` writes it. Not set: the reflection service of the server.',
    ),
    backendRef: ref('BackendObjectReference', 'The Service of the server, instead of static.'),
    include: list(grpcPattern, 'Methods that become tools. Default: all.', 1, 64),
    exclude: list(grpcPattern, 'Stronger than include.', 1, 64),
  }),
  McpOpenApiMatch: object(
    'Matches operations by all fields that are set. Patterns match the entire value; `*` is any text, in a path any text without `/`, and `**` any text in a path.',
    {
      operationId: string('Pattern of the operationId, such as `list*`.', { minLength: 1, maxLength: 253 }),
      tag: string('Pattern of one of the tags.', { minLength: 1, maxLength: 253 }),
      path: string('Pattern of method and path, such as `GET /pets/{id}` or `* /pets/**`.', {
        minLength: 1,
        maxLength: 1024,
        pattern: '^([A-Z]+|\\*) /\\S*$',
      }),
    },
    [],
    [atLeastOneOf('operationId', 'tag', 'path')],
  ),
  McpSelector: object(
    'Selects Services; their ports with appProtocol `proxy.dev/mcp` or `proxy.dev/mcp-sse` become targets. Policies for one of them: a ProxyPolicy that targets the Service.',
    {
      namespaces: ref(
        'LabelSelector',
        'Namespaces to look in. Not set: only that of the backend. Other namespaces need a ReferenceGrant, from ProxyBackends (`group: proxy.dev`) of the namespace of the backend to Services; servers without one are skipped, and the status says so.',
      ),
      services: ref('LabelSelector', 'Services to select.'),
    },
    [],
    [atLeastOneOf('namespaces', 'services')],
  ),
  McpTarget: object(
    'One MCP server at a fixed address. For Services in the cluster prefer selector.',
    {
      host: ref('Host'),
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
      arguments: map(
        anyJson('Any JSON but null.'),
        'Arguments that the gateway sets, by name. Clients do not see them; values that clients send are replaced.',
        1,
        16,
      ),
      computedArguments: map(
        ref('CELExpression'),
        'As arguments, with values computed from the request, for example `jwt.sub`; stronger than arguments. If an expression fails, so does the call.',
        1,
        16,
      ),
    },
    ['name'],
  ),
}
