/** UTF-8 bytes per token, on average over the common tokenizers. */
const BYTES_PER_TOKEN = 4

/** Estimates the tokens of texts, for budgets if the upstream reported no count. */
export function estimateTokens(texts: readonly string[]): number {
  let bytes = 0
  for (const text of texts) bytes += Buffer.byteLength(text)
  return tokensIn(bytes)
}

/** Estimates the tokens of as many bytes of text. */
export const tokensIn = (bytes: number): number => Math.ceil(bytes / BYTES_PER_TOKEN)
