import { appendAtEnds } from '../../common/append.ts'
import { compact, inside, listOf, numberOf, objectOf, objectsOf, textOf, without } from '../../common/read.ts'
import type { ClientFormatEntry, FlatMessage, JsonObject, RequestParams } from '../../common/types.ts'
import { addressGemini } from './address.ts'
import { member } from './members.ts'

const SYSTEM = ['systemInstruction', 'system_instruction']

/** generateContent of the Gemini API. */
export const geminiEntry: ClientFormatEntry = {
  format: 'gemini',
  title: 'Gemini',
  isStreaming: (body) => body['stream'] === true,
  address: addressGemini,
  params: (body) => readConfig(inside(member(body, 'generationConfig'))),

  enrich(body, { prepend = [], append = [] }) {
    const before = split(prepend)
    const after = split(append)
    const texts = [...before.system, ...systemParts(body), ...after.system]
    return {
      ...(before.system.length + after.system.length === 0 ? body : { ...without(body, ...SYSTEM), systemInstruction: { parts: texts } }),
      contents: [...before.contents, ...appendAtEnds(listOf(body['contents']), after.contents, (content) => inside(content)['role'] === 'model')],
    }
  },

  flattenRequest(body) {
    const system = joinParts(systemParts(body), '\n')
    const turns = objectsOf(body['contents']).map((content) => ({ role: roleOf(content), content: joinParts(content['parts'], ' ') }))
    return system === '' ? turns : [{ role: 'system', content: system }, ...turns]
  },

  replaceMessages(body, messages) {
    const { system, contents } = split(messages)
    return { ...without(body, ...SYSTEM), ...(system.length > 0 && { systemInstruction: { parts: system } }), contents }
  },

  flattenResponse: (body) => objectsOf(body['candidates']).map(({ content }) => ({ role: 'assistant', content: joinParts(inside(content)['parts'], ' ') })),

  replaceChoices(body, contents) {
    let at = 0
    const candidates = listOf(body['candidates']).map((item) => {
      const candidate = objectOf(item)
      if (candidate === undefined) return item
      const text = contents[at++] ?? ''
      const content = inside(candidate['content'])
      if (joinParts(content['parts'], ' ') === text) return candidate
      const others = listOf(content['parts']).filter((part) => textOf(inside(part)['text']) === undefined)
      return { ...candidate, content: { role: 'model', ...content, parts: [{ text }, ...others] } }
    })
    return { ...body, candidates }
  },
}

/** countTokens: a request, or a whole one in a member. */
export const geminiCountEntry: ClientFormatEntry = {
  ...geminiEntry,
  format: 'geminiCount',
  title: 'Gemini countTokens',
  isStreaming: () => false,
  enrich: (body, enrichment) => (requestIn(body) === body ? geminiEntry.enrich(body, enrichment) : body),
  flattenRequest: (body) => geminiEntry.flattenRequest(requestIn(body)),
  flattenResponse: () => [],
  replaceChoices: (body) => body,
}

/** The request whose tokens are counted. */
export const requestIn = (body: JsonObject): JsonObject => objectOf(member(body, 'generateContentRequest')) ?? body

/** embedContent and batchEmbedContents. */
export const geminiEmbeddingsEntry: ClientFormatEntry = {
  format: 'geminiEmbeddings',
  title: 'Gemini embedContent',
  isStreaming: () => false,
  address: addressGemini,
  params: (body) => compact({ dimensions: numberOf(member(embeddingsIn(body)[0] ?? {}, 'outputDimensionality')) }),
  enrich: (body) => body,
  flattenRequest: (body) => embeddingsIn(body).map(({ content }) => ({ role: 'user', content: joinParts(inside(content)['parts'], ' ') })),
  replaceMessages: (body) => body,
  flattenResponse: () => [],
  replaceChoices: (body) => body,
}

/** The requests of a batch, or the single one. */
export const embeddingsIn = (body: JsonObject): readonly JsonObject[] => (Array.isArray(body['requests']) ? objectsOf(body['requests']) : [body])

function readConfig(config: JsonObject): RequestParams {
  return compact({
    temperature: numberOf(config['temperature']),
    top_p: numberOf(member(config, 'topP')),
    frequency_penalty: numberOf(member(config, 'frequencyPenalty')),
    presence_penalty: numberOf(member(config, 'presencePenalty')),
    seed: numberOf(config['seed']),
    max_tokens: numberOf(member(config, 'maxOutputTokens')),
  })
}

const roleOf = ({ role, parts }: JsonObject): string => {
  if (role === 'model') return 'assistant'
  return objectsOf(parts).some((part) => member(part, 'functionResponse') !== undefined) ? 'tool' : 'user'
}

const systemParts = (body: JsonObject): readonly unknown[] => listOf(inside(member(body, 'systemInstruction'))['parts'])

/** The texts of parts. */
export function joinParts(parts: unknown, joiner: string): string {
  return objectsOf(parts)
    .flatMap((part) => textOf(part['text']) ?? [])
    .join(joiner)
}

function split(messages: readonly FlatMessage[]): { readonly system: JsonObject[]; readonly contents: JsonObject[] } {
  const system: JsonObject[] = []
  const contents: JsonObject[] = []
  for (const { role, content } of messages) {
    const known = role.toLowerCase()
    if (known === 'system' || known === 'developer') system.push({ text: content })
    else contents.push({ role: known === 'assistant' || known === 'model' ? 'model' : 'user', parts: [{ text: content }] })
  }
  return { system, contents }
}
