import type { Cooperative } from '../../../runtime/cooperative.ts'

/** UTF-8 bytes per token, on average over the common tokenizers. */
const BYTES_PER_TOKEN = 4

/** Estimates the tokens of texts, for budgets if the upstream reported no count. */
export function estimateTokens(texts: readonly string[]): number {
  let bytes = 0
  for (const text of texts) bytes += Buffer.byteLength(text)
  return tokensIn(bytes)
}

/** Members of responses in any format with text that a model has written, or the arguments of a call. */
const written = /^(?:text|content|refusal|thinking|reasoning|reasoning_content|arguments|partial_json|input|args|delta|outputText|generation|completion)$/

/** Bytes of the text in a response or an event of any format. */
export function* writtenBytesOf(body: unknown): Cooperative<number> {
  let bytes = 0
  const waiting: { readonly value: unknown; readonly isWritten: boolean }[] = [{ value: body, isWritten: false }]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { value, isWritten } = next
    yield
    if (typeof value === 'string') bytes += isWritten ? Buffer.byteLength(value) : 0
    else if (Array.isArray(value)) for (const each of value as unknown[]) waiting.push({ value: each, isWritten })
    else if (typeof value === 'object' && value !== null)
      for (const [key, each] of Object.entries(value)) waiting.push({ value: each, isWritten: typeof each === 'string' ? written.test(key) : false })
  }
  return bytes
}

/** Estimates the tokens of as many bytes of text. */
export const tokensIn = (bytes: number): number => Math.ceil(bytes / BYTES_PER_TOKEN)
