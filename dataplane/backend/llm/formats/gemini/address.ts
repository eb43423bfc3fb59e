import { FormatError, type JsonObject } from '../../common/types.ts'

/** Methods of the Gemini API by their names in lower case. */
const methods = {
  generatecontent: 'gemini',
  streamgeneratecontent: 'gemini',
  counttokens: 'geminiCount',
  embedcontent: 'geminiEmbeddings',
  batchembedcontents: 'geminiEmbeddings',
} as const

/** Characters of a decoded name that a model must not contain. */
// oxlint-disable-next-line no-control-regex -- the pattern rejects control characters
const UNSAFE = /[\0-\x1f\x7f\\?#<>]|\.\./
/** Members of the path before the name of a model. */
const KINDS = ['/models/', '/tunedModels/']

interface GeminiCall {
  readonly format: (typeof methods)[keyof typeof methods]
  readonly model: string
  readonly isStreaming: boolean
}

/** What the path of a request to the Gemini API names. Throws a FormatError if that is no method, or no model. */
export function readGeminiCall(target: string): GeminiCall {
  const path = decode(target.split('?', 1)[0] ?? '') ?? ''
  const end = path.lastIndexOf(':')
  const method = path.slice(end + 1).toLowerCase()
  if (end === -1 || !Object.hasOwn(methods, method))
    throw new FormatError('unsupported', `unsupported conversion: the path names no method of the Gemini API; use one of ${NAMES}`)
  // Names may have slashes and colons: `/models/vendor/model:1:generateContent`.
  const kind = KINDS.find((one) => path.includes(one)) ?? ''
  const given = kind === '' ? '' : path.slice(path.indexOf(kind) + kind.length, end)
  if (given === '' || UNSAFE.test(given)) throw new FormatError('missing', 'missing field: model not specified in the path')
  return {
    format: methods[method as keyof typeof methods],
    model: kind === '/tunedModels/' ? `tunedModels/${given}` : given,
    isStreaming: method === 'streamgeneratecontent',
  }
}

const NAMES = 'generateContent, streamGenerateContent, countTokens, embedContent, batchEmbedContents'

function decode(path: string): string | undefined {
  try {
    return decodeURIComponent(path)
  } catch {
    return undefined
  }
}

/**
 * Adds the model and `stream`, which the path of a request to the Gemini API names, to its body: so policies, guards and plugins find them where other
 * formats have them. Members of these names in the body have no meaning.
 */
export function addressGemini(body: JsonObject, target: string): JsonObject {
  const { model, isStreaming } = readGeminiCall(target)
  const { model: _, stream: __, ...rest } = body
  return { ...rest, model, ...(isStreaming && { stream: true }) }
}
