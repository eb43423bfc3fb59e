import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { PYTHON, toolAt, type ClientGateway } from './gateway.ts'

/** What a client can do with a provider. */
export const features = ['text', 'stream', 'tools', 'image', 'thinking', 'schema', 'error', 'cancel'] as const
export type Feature = (typeof features)[number]

/**
 * What came of a feature. `rejected`: 400 or 404 of the gateway or the provider, whose message is the reason; `notApplicable`: the client does not have the
 * feature; `notOffered`: the gateway lacks what the client needs.
 */
export interface Cell {
  readonly outcome: 'works' | 'rejected' | 'notApplicable' | 'notOffered' | 'fails'
  readonly reason?: string
}

/** What one client did: by provider and feature. */
export interface ClientResults {
  readonly version: string
  readonly providers: Readonly<Record<string, Readonly<Record<string, Cell>>>>
}

interface Client {
  /** The API that it uses. */
  readonly format: 'Chat Completions' | 'Messages' | 'Responses' | 'generateContent'
  readonly program: string
  readonly variant?: string
}

/** The clients, by the name on the page. */
export const clients: Readonly<Record<string, Client>> = {
  'OpenAI SDK for Python': { format: 'Chat Completions', program: 'openai_chat.py' },
  'OpenAI SDK for Python, Responses': { format: 'Responses', program: 'openai_responses.py' },
  'Anthropic SDK for Python': { format: 'Messages', program: 'anthropic_messages.py' },
  'Google Gen AI SDK for Python': { format: 'generateContent', program: 'google_genai.py' },
  'Google Gen AI SDK for JavaScript': { format: 'generateContent', program: 'google-genai.mjs' },
  'LangChain, ChatOpenAI': { format: 'Chat Completions', program: 'langchain_openai_chat.py' },
  'LangChain, ChatAnthropic': { format: 'Messages', program: 'langchain_anthropic_messages.py' },
  'LlamaIndex, OpenAILike': { format: 'Chat Completions', program: 'llamaindex_client.py' },
  'LiteLLM SDK': { format: 'Chat Completions', program: 'litellm_client.py' },
  'AI SDK, OpenAI': { format: 'Responses', program: 'ai-sdk.mjs', variant: 'openai' },
  'AI SDK, Anthropic': { format: 'Messages', program: 'ai-sdk.mjs', variant: 'anthropic' },
  'AI SDK, OpenAI-compatible': { format: 'Chat Completions', program: 'ai-sdk.mjs', variant: 'openai-compatible' },
  'Codex CLI': { format: 'Responses', program: 'cli_codex.py' },
  'Claude Code': { format: 'Messages', program: 'cli_claude.py' },
}

/** The committed results, from which the page is made. */
export const RESULTS = fileURLToPath(new URL('results.json', import.meta.url))
export const PAGE = fileURLToPath(new URL('../../../docs/guide/clients.md', import.meta.url))
export const readResults = (): Readonly<Record<string, ClientResults>> => JSON.parse(readFileSync(RESULTS, 'utf8')) as Readonly<Record<string, ClientResults>>

/** A line that a client prints: its version first, then a cell. */
type Line = { readonly version: string } | (Cell & { readonly provider: string; readonly feature: string; readonly trace?: string })

/** Runs a client with all providers. What is not a result (a trace) is printed, because nobody can see into the client otherwise. */
export async function runClient(name: string, { plan }: ClientGateway): Promise<ClientResults> {
  const { program, variant } = clients[name] ?? { program: name }
  const path = fileURLToPath(new URL(`clients/${program}`, import.meta.url))
  const command = program.endsWith('.mjs') ? process.execPath : program === 'litellm_client.py' ? toolAt('litellm/bin/python') : PYTHON
  const { stdout } = await promisify(execFile)(command, [path, JSON.stringify({ ...plan, variant })], { maxBuffer: 10_000_000 })
  let version = ''
  const providers: Record<string, Record<string, Cell>> = {}
  for (const text of stdout.split('\n')) {
    if (!text.startsWith('{')) continue
    const line = JSON.parse(text) as Line
    if ('version' in line) version = line.version
    else {
      const { provider, feature, outcome, reason, trace } = line
      if (trace !== undefined) process.stderr.write(`${name}, ${provider}, ${feature}: ${trace}\n`)
      ;(providers[provider] ??= {})[feature] = { outcome, ...(reason !== undefined && { reason: messageOf(reason) }) }
    }
  }
  return { version, providers }
}

/** The message of an error without what the SDK writes around it, and without ports and ids, which differ from run to run. */
function messageOf(reason: string): string {
  const quoted = /['"]message['"]: ?(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")/.exec(reason)
  return (quoted?.[1] ?? quoted?.[2] ?? reason).replaceAll(/http:\/\/127\.0\.0\.1:\d+/g, 'http://gateway').slice(0, 300)
}
