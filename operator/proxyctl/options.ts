/** How an option is parsed, and how help and completion show it. */
interface OptionEntry {
  readonly type: 'string' | 'boolean'
  readonly short?: string
  readonly multiple?: true
  /** Placeholder of the value. */
  readonly value?: string
  readonly text: string
  /** Completions of the value. */
  readonly completes?: readonly string[] | 'files'
}

export const formats = ['text', 'wide', 'json', 'yaml'] as const
/** Formats of single commands besides `formats`. */
const extraFormats = ['table', 'csv', 'md'] as const
export type Format = (typeof formats | typeof extraFormats)[number]

/** All options, in the order of the help. Each command lists the ones that it takes; `output` and `help` belong to every command. */
export const optionTable = {
  admin: { type: 'string', value: 'HOST:PORT', text: 'admin endpoint of a data plane; a standalone gateway prints it' },
  gateway: {
    type: 'string',
    value: 'NS/NAME',
    text: 'Gateway on the cluster; one of its pods is reached through the API server. Default: the Gateway of the route, or the only one of the cluster; without a cluster 127.0.0.1:15000',
  },
  kubeconfig: { type: 'string', value: 'FILE', text: 'default: KUBECONFIG (several as in kubectl), else ~/.kube/config', completes: 'files' },
  dir: { type: 'string', value: 'DIR', text: 'directory or file of manifests instead of a cluster', completes: 'files' },
  filename: {
    type: 'string',
    short: 'f',
    multiple: true,
    value: 'FILE',
    text: 'file or directory of manifests, or - for standard input; repeatable',
    completes: 'files',
  },
  namespace: { type: 'string', short: 'n', value: 'NS', text: 'one namespace; for manifests, the namespace of objects without one' },
  path: { type: 'string', value: 'PREFIX', text: 'waits for a request with this path prefix' },
  host: { type: 'string', value: 'HOST', text: 'waits for a request with this host; with URL, the Host header to send' },
  method: {
    type: 'string',
    value: 'METHOD',
    text: 'waits for a request with this method; with URL, the method to send',
    completes: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD'],
  },
  header: { type: 'string', multiple: true, value: "'NAME: VALUE'", text: 'header of the request to URL or to the servers; repeatable' },
  timeout: { type: 'string', value: 'DURATION', text: 'how long to wait for the request; default 30s' },
  client: { type: 'boolean', text: 'prints the version of proxyctl only, without a request to the cluster' },
  from: {
    type: 'string',
    value: 'FORMAT',
    text: 'format of the file: litellm or agentgateway. Default: recognized by its fields',
    completes: ['litellm', 'agentgateway'],
  },
  port: { type: 'string', value: 'PORT', text: 'port on loopback; default any free one' },
  'no-open': { type: 'boolean', text: 'prints the address without opening the browser' },
  secret: { type: 'string', value: 'NS/NAME', text: 'Secret with the API keys' },
  metadata: { type: 'string', multiple: true, value: 'NAME=VALUE', text: 'metadata of the key, such as team=red or models=["gpt-*"]; repeatable' },
  expires: { type: 'string', value: 'TIME', text: 'when the key ends: a duration such as 90d or 12h, or a time such as 2027-01-31T00:00:00Z' },
  write: { type: 'boolean', text: 'writes the Secret on the cluster instead of printing what to apply' },
  server: { type: 'string', multiple: true, value: 'NAME=URL', text: 'MCP server: name of its target, and URL of its endpoint; repeatable' },
  pins: { type: 'string', value: 'FILE', text: 'file of pins; default mcp-pins.json', completes: 'files' },
  expand: { type: 'boolean', text: 'prints a valid config file with its short forms in the long form' },
  by: { type: 'string', value: 'DIMENSIONS', text: 'dimensions of the groups, separated by commas, such as team,model; default model' },
  since: { type: 'string', value: 'TIME', text: 'start: a duration before now such as 7d or 12h, or a time such as 2027-01-31T00:00:00Z; default 7d' },
  until: { type: 'string', value: 'TIME', text: 'end, as for --since; default now' },
  file: { type: 'string', value: 'FILE', text: 'SQLite file of a ledger, instead of a data plane', completes: 'files' },
  out: { type: 'string', value: 'FILE', text: 'file to replace, instead of standard output', completes: 'files' },
  types: { type: 'boolean', text: 'checks types too, with the TypeScript that is installed next to the plugin' },
  config: { type: 'string', value: 'JSON', text: 'config of the plugin' },
  duration: { type: 'string', value: 'DURATION', text: 'how long to measure each kind of isolation; default 3s' },
  provider: {
    type: 'string',
    value: 'NAME|URL',
    text: 'openai, anthropic or gemini, or the URL of a server with the API of OpenAI, such as http://localhost:11434/v1',
    completes: ['openai', 'anthropic', 'gemini'],
  },
  model: { type: 'string', value: 'NAME', text: 'model of the provider' },
  listen: { type: 'string', value: 'ADDRESS:PORT', text: 'where the gateway listens; default 127.0.0.1:4000' },
  clients: { type: 'string', value: 'NAMES', text: 'clients that get an API key, separated by commas. Default: none, and no authentication' },
  mcp: { type: 'string', value: 'URL', text: 'MCP server; default none' },
  output: { type: 'string', short: 'o', value: formats.join('|'), text: 'output format; default text. wide adds columns to tables', completes: formats },
  help: { type: 'boolean', short: 'h', text: 'prints this help' },
} as const satisfies Readonly<Record<string, OptionEntry>>

export type OptionName = keyof typeof optionTable

/** Options of every command. */
export const commonOptions: readonly OptionName[] = ['output', 'help']

/** The entry of an option, with all its fields optional. */
export const optionEntry = (name: OptionName): OptionEntry => optionTable[name]
