import { inside, listOf, objectsOf, textOf, without } from '../common/read.ts'
import { NO_THOUGHT } from '../common/thoughts.ts'
import type { JsonObject } from '../common/types.ts'
import { withList, withMember } from './lists.ts'
import type { FittedBody } from './native-completions.ts'
import type { TargetRules } from './types.ts'

/** The prefix of signatures that the gateway wrapped (formats/gemini/members.ts), in base64: `signature:`. */
const WRAPPED = /^c2lnbmF0dXJlO/
const SIGNATURES = ['thoughtSignature', 'thought_signature']

/**
 * Fits a request of a Gemini client to Gemini: without the members that the path names, without empty contents, and without the signatures of other
 * providers, which Gemini rejects. Models that demand a signature at the first call of each step accept a filler.
 */
export function fitGemini(body: JsonObject, rules: TargetRules): FittedBody {
  const addressed = without(body, 'model', 'stream')
  const fitted = withList(addressed, 'contents', (content) => fitContent(content, rules))
  return { body: fitted, toolNames: new Map(), omitted: [] }
}

function fitContent(content: JsonObject, { thoughts }: TargetRules): JsonObject | undefined {
  if (Array.isArray(content['parts']) && listOf(content['parts']).length === 0) return undefined
  const own = withList(content, 'parts', (part) => {
    const signature = SIGNATURES.find((key) => WRAPPED.test(textOf(part[key]) ?? ''))
    if (signature === undefined) return part
    return part['thought'] === true && part['text'] === '' ? undefined : without(part, signature)
  })
  // The parts were thinking of another provider only.
  if (own !== content && listOf(own['parts']).length === 0) return undefined
  return thoughts === 'demanded' && content['role'] === 'model' ? withFiller(own) : own
}

const isCall = (part: JsonObject): boolean => part['functionCall'] !== undefined || part['function_call'] !== undefined

function withFiller(content: JsonObject): JsonObject {
  const call = objectsOf(content['parts']).find(isCall)
  if (call === undefined || SIGNATURES.some((key) => call[key] !== undefined)) return content
  return withList(content, 'parts', (part) => (part === call ? { ...part, thoughtSignature: NO_THOUGHT } : part))
}

/** Fits a countTokens request: the name of the model in a whole request is that of the path. */
export function fitGeminiCount(body: JsonObject, model: string): JsonObject {
  const addressed = without(body, 'model', 'stream')
  const name = nameOf(model)
  const named = (request: JsonObject): JsonObject => ({ ...request, model: name })
  return withMember(withMember(addressed, 'generateContentRequest', named), 'generate_content_request', named)
}

/** A batch of embeddings with the model of the path in each request. */
export function fitGeminiEmbeddings(requests: readonly JsonObject[], model: string): JsonObject {
  return { requests: requests.map((request) => ({ ...without(inside(request), 'stream'), model: nameOf(model) })) }
}

/** The resource name of a model. */
const nameOf = (model: string): string => (/^(?:tunedModels|models)\//.test(model) ? model : `models/${model}`)
