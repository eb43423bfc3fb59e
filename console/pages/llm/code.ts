import { buildBody, formats, type Chat } from './chat.ts'

/** Clients for which the playground writes code. */
const clients = ['curl', 'OpenAI SDK, Python', 'OpenAI SDK, TypeScript', 'Anthropic SDK, Python', 'Anthropic SDK, TypeScript'] as const
export type Client = (typeof clients)[number]

interface Endpoint {
  /** `http://host:port` and the path before that of the format. */
  readonly base: string
  readonly headers: readonly (readonly [string, string])[]
}

/** The clients that write the format of a chat. */
export const clientsOf = ({ format }: Pick<Chat, 'format'>): Client[] =>
  clients.filter((client) => client === 'curl' || client.startsWith(format === 'messages' ? 'Anthropic' : 'OpenAI'))

/** Code that sends a chat to the gateway as a client of its users would. */
export function writeCode(client: Client, chat: Chat, { base, headers }: Endpoint): string {
  const body = buildBody(chat)
  const { path } = formats[chat.format]
  if (client === 'curl') {
    const fields = [['content-type', 'application/json'], ...headers].map(([name, value]) => `  -H ${quote(`${name}: ${value}`)} \\`)
    return [`curl ${quote(`${base}${path}`)} \\`, ...fields, `  -d ${quote(JSON.stringify(body, undefined, 2))}`].join('\n')
  }
  const isPython = client.endsWith('Python')
  const key = keyOf(headers)
  const rest = headers.filter(([name]) => !isKey(name))
  const call = chat.format === 'completions' ? 'chat.completions.create' : `${chat.format}.create`
  const isAnthropic = chat.format === 'messages'
  // The SDK of Anthropic adds /v1 itself.
  const url = isAnthropic ? base.replace(/\/v1$/, '') : base
  const name = isAnthropic ? 'Anthropic' : 'OpenAI'
  return isPython ? python(name, url, key, rest, call, body) : typescript(name, url, key, rest, call, body)
}

function python(name: string, base: string, key: string, headers: Endpoint['headers'], call: string, body: object): string {
  const options = [`base_url=${pythonOf(base)}`, `api_key=${pythonOf(key)}`]
  if (headers.length > 0) options.push(`default_headers=${pythonOf(Object.fromEntries(headers))}`)
  const fields = Object.entries(body).map(([field, value]) => `    ${field}=${pythonOf(value)},`)
  const isStreaming = 'stream' in body
  return [
    `from ${name.toLowerCase()} import ${name}`,
    '',
    `client = ${name}(${options.join(', ')})`,
    `result = client.${call}(`,
    ...fields,
    ')',
    ...(isStreaming ? ['for event in result:', '    print(event)'] : ['print(result)']),
  ].join('\n')
}

function typescript(name: string, base: string, key: string, headers: Endpoint['headers'], call: string, body: object): string {
  const options = { baseURL: base, apiKey: key, ...(headers.length > 0 && { defaultHeaders: Object.fromEntries(headers) }) }
  const isStreaming = 'stream' in body
  return [
    `import ${name} from '${name === 'OpenAI' ? 'openai' : '@anthropic-ai/sdk'}'`,
    '',
    `const client = new ${name}(${JSON.stringify(options)})`,
    `const result = await client.${call}(${JSON.stringify(body, undefined, 2)})`,
    isStreaming ? 'for await (const event of result) console.log(event)' : 'console.log(result)',
  ].join('\n')
}

const isKey = (name: string): boolean => /^(?:authorization|x-api-key)$/i.test(name)
const keyOf = (headers: Endpoint['headers']): string => headers.find(([name]) => isKey(name))?.[1].replace(/^Bearer /i, '') ?? 'none'
/** A word of a shell. */
const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** A literal of Python. Texts are as in JSON, which Python reads alike. */
function pythonOf(value: unknown): string {
  if (value === true) return 'True'
  if (value === false) return 'False'
  if (value === null) return 'None'
  if (Array.isArray(value)) return `[${value.map(pythonOf).join(', ')}]`
  if (typeof value === 'object')
    return `{${Object.entries(value)
      .map(([key, each]) => `${JSON.stringify(key)}: ${pythonOf(each)}`)
      .join(', ')}}`
  return JSON.stringify(value)
}
