import { isObject } from '../../common/json.ts'
import type { RawUsage, Reply, ReplyBlock } from '../../common/neutral.ts'
import { compact } from '../../common/read.ts'
import { geminiStops } from '../../common/stops.ts'
import { splitThought } from '../../common/thoughts.ts'
import { objectInput } from '../../common/tools.ts'
import type { JsonObject, ResponseContext } from '../../common/types.ts'
import { inputWithCache } from '../../usage/raw.ts'
import { wrapSignature } from './members.ts'

/** Writes a generateContent response (llm.md §7.16). */
export function writeGeminiReply(reply: Reply, context: ResponseContext): JsonObject {
  return writeChunk({
    id: reply.id ?? context.hex(24),
    model: reply.model ?? context.memo.model,
    parts: reply.blocks.flatMap(writePart),
    finishReason: geminiStops[reply.stop ?? 'end'],
    usage: reply.usage,
  })
}

interface Chunk {
  readonly id: string
  readonly model: string
  readonly parts: readonly JsonObject[]
  readonly finishReason?: string
  readonly usage?: RawUsage
}

/** A response, or a piece of a stream, which has the same form. */
export function writeChunk({ id, model, parts, finishReason, usage }: Chunk): JsonObject {
  return compact({
    candidates: [compact({ content: { parts, role: 'model' }, finishReason, index: 0 })],
    usageMetadata: usage && writeGeminiUsage(usage),
    modelVersion: model,
    responseId: id,
  })
}

/** A block with content as a part. */
function writePart(block: ReplyBlock): JsonObject[] {
  switch (block.type) {
    case 'text':
      return block.text === '' ? [] : [{ text: block.text }]
    case 'thinking':
      return block.text === '' && block.signature === '' ? [] : [writeThought(block.text, block.signature)]
    case 'redacted':
      return []
    case 'toolUse':
      return [writeCall(block.id, block.name, objectInput(block))]
  }
}

/** A part of thinking. */
export function writeThought(text: string, signature: string): JsonObject {
  return { text, thought: true, ...(signature !== '' && { thoughtSignature: wrapSignature(signature) }) }
}

/** A call; `given` is its id, with the thought signature of Gemini if there is one. */
export function writeCall(given: string, name: string, args: unknown): JsonObject {
  const { id, thought } = splitThought(given)
  return { functionCall: { id, name, args: isObject(args) ? args : {} }, ...(thought !== undefined && { thoughtSignature: thought }) }
}

/** `usageMetadata`: thoughts are not among the candidates' tokens, and cached tokens are among those of the prompt. */
function writeGeminiUsage(usage: RawUsage): JsonObject {
  const { output = 0, reasoning = 0, cacheRead } = usage
  const thoughts = Math.min(reasoning, output)
  const prompt = inputWithCache(usage) ?? 0
  return compact({
    promptTokenCount: prompt,
    candidatesTokenCount: output - thoughts,
    thoughtsTokenCount: thoughts === 0 ? undefined : thoughts,
    cachedContentTokenCount: cacheRead,
    totalTokenCount: prompt + output,
  })
}
