import type { FlatMessage } from '../common/types.ts'

/** A byte pair encoding: ranks of byte strings (as latin1 text), and the pattern that splits text into pieces. */
interface Encoding {
  readonly ranks: ReadonlyMap<string, number>
  readonly pattern: RegExp
}

/** Longer pieces are split, because merging takes quadratic time and the text comes from clients. */
const MAX_PIECE_LENGTH = 256
const PER_MESSAGE = 3
const AT_END = 3

const loaded = new Map<string, Promise<Encoding>>()

/** Counts the tokens of messages as OpenAI's models do (llm.md §11.1). Loads tables of several megabytes on first use; runs in a worker thread (count.ts). */
export async function countMessages(model: string, messages: readonly FlatMessage[]): Promise<number> {
  const encoding = await loadEncoding(/^(?:gpt-4o|gpt-4\.1|gpt-4\.5|gpt-5|chatgpt-4o|o\d)/.test(model) ? 'o200k' : 'cl100k')
  let tokens = AT_END
  for (const { role, content } of messages) tokens += PER_MESSAGE + countText(encoding, role) + countText(encoding, content)
  return tokens
}

function loadEncoding(name: 'o200k' | 'cl100k'): Promise<Encoding> {
  let encoding = loaded.get(name)
  if (encoding === undefined) {
    const ranks = name === 'o200k' ? import('js-tiktoken/ranks/o200k_base') : import('js-tiktoken/ranks/cl100k_base')
    encoding = ranks.then(({ default: table }) => ({ ranks: readRanks(table.bpe_ranks), pattern: new RegExp(table.pat_str, 'ug') }))
    loaded.set(name, encoding)
  }
  return encoding
}

/** Parses lines of `! <rank of the first token> <token in base64>...`. */
function readRanks(table: string): Map<string, number> {
  const ranks = new Map<string, number>()
  for (const line of table.split('\n')) {
    const [, first = '', ...tokens] = line.split(' ')
    tokens.forEach((token, at) => ranks.set(Buffer.from(token, 'base64').toString('latin1'), Number(first) + at))
  }
  return ranks
}

function countText({ ranks, pattern }: Encoding, text: string): number {
  let tokens = 0
  for (const [piece] of text.matchAll(pattern)) {
    const bytes = Buffer.from(piece).toString('latin1')
    for (let at = 0; at < bytes.length; at += MAX_PIECE_LENGTH) tokens += countPiece(ranks, bytes.slice(at, at + MAX_PIECE_LENGTH))
  }
  return tokens
}

/** Merges the pair of lowest rank until no pair has a rank. Looks ranks up again only next to a merge. */
function countPiece(ranks: ReadonlyMap<string, number>, bytes: string): number {
  if (ranks.has(bytes)) return 1
  const starts = Array.from({ length: bytes.length + 1 }, (_, at) => at)
  const rankAt = (at: number): number => ranks.get(bytes.slice(starts[at], starts[at + 2])) ?? Infinity
  const pairs = Array.from({ length: bytes.length - 1 }, (_, at) => rankAt(at))
  for (;;) {
    let lowest = Infinity
    let at = -1
    for (let i = 0; i < pairs.length; i++) {
      const rank = pairs[i] ?? Infinity
      if (rank < lowest) {
        lowest = rank
        at = i
      }
    }
    if (at === -1) return starts.length - 1
    starts.splice(at + 1, 1)
    pairs.splice(at, 1)
    if (at < pairs.length) pairs[at] = rankAt(at)
    if (at > 0) pairs[at - 1] = rankAt(at - 1)
  }
}
