import { createHash } from 'node:crypto'

/** What a request says, whatever the API. */
export interface View {
  readonly turns: readonly Turn[]
  readonly tools: readonly string[]
  /** The response must follow a JSON schema. */
  readonly hasSchema: boolean
  readonly isThinking: boolean
  readonly isStreaming: boolean
}

export interface Turn {
  readonly role: 'user' | 'assistant'
  readonly text: string
  readonly images: readonly { readonly type: string; readonly data: string }[]
  /** The ids of calls in this turn. */
  readonly calls: readonly string[]
  readonly results: readonly { readonly id: string; readonly text: string }[]
}

/** What the model says. */
export interface Reply {
  readonly thinking: string | undefined
  readonly text: string
  readonly calls: readonly { readonly name: string; readonly input: Readonly<Record<string, unknown>> }[]
  /** The API fails with this status. */
  readonly status?: number
  /** The response never ends; the tag tells which one the client has left. */
  readonly endless?: string
}

const OSLO = 'Oslo is in the north, I ask for its weather first.'
const BERGEN = 'Oslo is known, Bergen is next.'

/**
 * The model of all providers. The last prompt that it knows decides what it says, so that agents that add texts of their own get the
 * same answers. What it says after a call holds the results, and what it sees of an image its size, so that nothing is lost unnoticed.
 */
export function reply(view: View): Reply {
  const { turns } = view
  const at = turns.findLastIndex(({ text }) => PROMPT.test(text))
  const [, prompt = '', detail = ''] = PROMPT.exec(turns[at]?.text ?? '') ?? []
  const results = turns.slice(at).flatMap((turn) => turn.results.map(({ text }) => text.trim()))
  const say = (text: string, more: Partial<Reply> = {}): Reply => ({ thinking: undefined, text, calls: [], ...more })
  const thinking = (text: string): string | undefined => (view.isThinking ? text : undefined)
  switch (prompt) {
    case 'Fail with':
      return say('', { status: Number(detail) })
    case 'Count to a million':
      return say('', { endless: detail })
    case 'What is in the picture':
      return say(turns.flatMap(({ images }) => images.map(({ type, data }) => `${type} of ${Buffer.from(data, 'base64').length} bytes`)).join(', '))
    case 'Weather as JSON':
      return sayWeather(view, results.length > 0, thinking('A schema.'), say)
    case 'Weather of Paris and Rome':
      if (results.length > 0) return say(results.join('; '))
      return say('Let me look.', { thinking: thinking('Both at once.'), calls: ['Paris', 'Rome'].map((city) => call(view.tools, city)) })
    case 'Weather of Oslo, then of Bergen':
      if (results.length === 0) return say('', { thinking: thinking(OSLO), calls: [call(view.tools, 'Oslo')] })
      if (results.length === 1) return say('', { thinking: thinking(BERGEN), calls: [call(view.tools, 'Bergen')] })
      return say(results.join('; '), { thinking: thinking('Both are known.') })
    default:
      return say('Hello, world. Grüß Gott 👋.')
  }
}

/** An answer by a schema: that of the request, or of a tool by which a client gets such answers. */
function sayWeather({ hasSchema, tools }: View, hasResult: boolean, thinking: string | undefined, say: (text: string, more?: Partial<Reply>) => Reply): Reply {
  const input = { city: 'Paris', degrees: 21 }
  const name = tools.find((tool) => /^(?:json|StructuredOutput)$/.test(tool))
  if (name !== undefined && !hasResult) return say('', { thinking, calls: [{ name, input }] })
  return say(hasSchema ? JSON.stringify(input) : 'There is no schema.')
}

const PROMPT =
  /(Fail with|Count to a million|What is in the picture|Weather as JSON|Weather of Paris and Rome|Weather of Oslo, then of Bergen|Say hello)(?:,? (\w+))?/

/** A call of the tool that the client has: that of the tests, or one of an agent that runs commands. */
function call(tools: readonly string[], city: string): Reply['calls'][number] {
  const degrees = { Paris: 21, Rome: 25, Oslo: 3, Bergen: 7 }[city] ?? 0
  const command = `echo "${degrees} degrees in ${city}"`
  const inputs: Readonly<Record<string, object>> = {
    get_weather: { city },
    Bash: { command, description: `Weather of ${city}` },
    exec_command: { cmd: command },
    shell_command: { command },
    shell: { command: ['bash', '-c', command] },
  }
  const name = tools.find((tool) => tool in inputs) ?? 'get_weather'
  return { name, input: { ...inputs[name] } }
}

/** The signature of a thought. It is valid for its text only, as those of the vendors are. */
export const sign = (thought: string): string => createHash('sha256').update(`secret of the vendor ${thought}`).digest('base64')

/** Pieces of a text as a model streams it, with characters of several bytes and empty arguments. */
export const piecesOf = (text: string): string[] => text.match(/\s*\S+/gu) ?? []

/** Pieces of the arguments of a call. */
export const fragmentsOf = (input: unknown): string[] => JSON.stringify(input).match(/.{1,7}/gsu) ?? []

export type Json = Readonly<Record<string, unknown>>

export const objectOf = (value: unknown): Json => (typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {})
export const listOf = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.map(objectOf) : [])
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
