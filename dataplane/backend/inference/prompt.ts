/** Bytes of JSON text that make a token, on average. */
const TOKEN_BYTES = 4
/** Bytes of a prompt that are compared; llm-d compares 131,072 tokens too. */
const MAX_BYTES = 131_072 * TOKEN_BYTES
/** Blocks grow with their distance from the start, so that a long prompt has few: [bytes of a block, up to this position]. */
const SIZES = [
  [256, 4096],
  [1024, 65_536],
  [4096, MAX_BYTES],
] as const
/** Position whose block is the key of a prompt that no server has seen: about the length of a short system prompt. */
const KEY_BYTES = 2048
/** Members of a request whose value is the prompt: chats, Responses and embeddings, completions, Gemini. */
const PROMPTS = ['"messages"', '"input"', '"prompt"', '"contents"', '"instructions"', '"system"'].map((name) => Buffer.from(name))
const MODEL = Buffer.from('"model"')
const MAX_MODEL_BYTES = 256

/** The prompt of a request, in blocks. Each hash covers all blocks before it, so that equal hashes mean equal prefixes. */
export interface Prompt {
  /** Hash of the model, then of each block. */
  readonly hashes: readonly number[]
  /** Estimated tokens up to the end of each block; 0 for the model. */
  readonly tokensAt: readonly number[]
  /** Estimated tokens of the prompt. */
  readonly tokens: number
  /** Index of the block that selects the server of a prefix that no server has seen. */
  readonly keyAt: number
  /** The model that the request names; undefined: none. */
  readonly model: string | undefined
}

export const emptyPrompt: Prompt = { hashes: [], tokensAt: [], tokens: 0, keyAt: 0, model: undefined }

/**
 * Reads the prompt of a request without parsing it: the text of the body from the first member that has a prompt. Requests of one chat have the same
 * text up to its last turn. A client can construct equal hashes; it then gets a server without its prefix, which costs its own time only.
 */
export function readPrompt(body: Buffer): Prompt {
  if (body.length === 0) return emptyPrompt
  const start = startOf(body)
  const model = modelOf(body)
  const length = Math.min(body.length - start, MAX_BYTES)
  const hash = new Hash()
  const name = Buffer.from(model ?? '')
  hash.add(name, 0, name.length)
  const hashes = [hash.value]
  const tokensAt = [0]
  let keyAt = 0
  let at = 0
  for (const [size, until] of SIZES) {
    for (; at + size <= Math.min(length, until); at += size) {
      hash.add(body, start + at, start + at + size)
      hashes.push(hash.value)
      tokensAt.push((at + size) / TOKEN_BYTES)
      if (at < KEY_BYTES) keyAt++
    }
  }
  return { hashes, tokensAt, tokens: Math.ceil((body.length - start) / TOKEN_BYTES), keyAt, model }
}

/** The first member with a prompt; the start of the body if there is none. */
function startOf(body: Buffer): number {
  let first = body.length
  for (const name of PROMPTS) {
    const at = body.subarray(0, first).indexOf(name)
    if (at !== -1) first = at
  }
  return first === body.length ? 0 : first
}

function modelOf(body: Buffer): string | undefined {
  const at = body.indexOf(MODEL)
  if (at === -1) return undefined
  const text = body.toString('utf8', at + MODEL.length, at + MODEL.length + MAX_MODEL_BYTES)
  return /^\s*:\s*"([^"\\]+)"/.exec(text)?.[1]
}

/** Two hashes of 32 bits, by the multiplications of MurmurHash3: one alone has too many collisions. */
class Hash {
  low = 0x9e3779b9
  high = 0x85ebca6b

  add(bytes: Buffer, from: number, to: number): void {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    let { low, high } = this
    let at = from
    for (; at + 4 <= to; at += 4) {
      const word = view.getInt32(at, true)
      low = Math.imul(low ^ word, 0xcc9e2d51)
      low ^= low >>> 15
      high = Math.imul(high + word, 0x1b873593)
      high ^= high >>> 13
    }
    for (; at < to; at++) {
      low = Math.imul(low ^ view.getUint8(at), 0xcc9e2d51)
      high = Math.imul(high + view.getUint8(at), 0x1b873593)
    }
    this.low = Math.imul(low ^ (low >>> 16), 0x85ebca6b)
    this.high = Math.imul(high ^ (high >>> 16), 0xc2b2ae35)
  }

  /** 53 bits, the integers that a number holds exactly. */
  get value(): number {
    return (this.low >>> 0) + (this.high & 0x1fffff) * 0x100000000
  }
}
