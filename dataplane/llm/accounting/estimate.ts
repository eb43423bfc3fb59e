/** UTF-8 bytes of text for one token, on average of the common tokenizers. */
const BYTES_PER_TOKEN = 4

/** Roughly how many tokens the texts are: for budgets where no upstream has counted. */
export function estimateTokens(texts: readonly string[]): number {
  let bytes = 0
  for (const text of texts) bytes += Buffer.byteLength(text)
  return Math.ceil(bytes / BYTES_PER_TOKEN)
}
