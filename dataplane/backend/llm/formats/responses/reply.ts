import { inputWithCache } from '../../usage/raw.ts'
import type { RawUsage, Reply, ReplyBlock } from '../../common/neutral.ts'
import { splitNamespace } from '../../common/namespaces.ts'
import { compact } from '../../common/read.ts'
import { printArguments } from '../../common/tools.ts'
import type { JsonObject, ResponseContext, Stop } from '../../common/types.ts'

/** Writes a Responses response (llm.md §7.9, §7.10). */
export function writeResponsesReply(reply: Reply, context: ResponseContext): JsonObject {
  const { blocks, stop } = reply
  return writeResponse({
    id: `resp_${context.hex(16)}`,
    createdS: reply.created ?? Math.floor(context.nowMs() / 1000),
    model: reply.model ?? context.memo.model,
    output: writeOutput(blocks, statusOf(stop ?? 'end'), context),
    stop: stop ?? 'end',
    usage: reply.usage,
  })
}

function writeOutput(blocks: readonly ReplyBlock[], status: string, context: ResponseContext): JsonObject[] {
  const reasoning = blocks.flatMap((block) =>
    block.type === 'thinking' && (block.text !== '' || block.signature !== '')
      ? [writeReasoning(`rs_${context.hex(16)}`, block.text, block.signature, 'completed')]
      : [],
  )
  const parts = blocks.flatMap((block) => (block.type === 'text' && block.text !== '' ? [writeTextPart(block.text)] : []))
  const calls = blocks.flatMap((block) => (block.type === 'toolUse' ? [writeCall(block.id, block.name, printArguments(block), 'completed')] : []))
  const item = writeMessageItem(`msg_${context.hex(16)}`, parts, status === 'completed' ? status : 'incomplete')
  return [...reasoning, ...(parts.length > 0 ? [item] : []), ...calls]
}

/** A content part of type `output_text`. */
export function writeTextPart(text: string): JsonObject {
  return { type: 'output_text', text, annotations: [] }
}

/** A part of a summary. */
export function writeSummaryPart(text: string): JsonObject {
  return { type: 'summary_text', text }
}

const SIGNATURE = 'signature:'

/**
 * An output item of type `reasoning`. The thoughts are its summary, which all clients show and send back; others leave out `content`. The signature of
 * Claude is its encrypted content (llm.md §7.9).
 */
export function writeReasoning(id: string, text: string, signature: string, status: string): JsonObject {
  return {
    type: 'reasoning',
    id,
    summary: text === '' ? [] : [writeSummaryPart(text)],
    // Never null: the AI SDK sends no item back that has none, and a model that thinks with tools rejects the request then.
    encrypted_content: `${SIGNATURE}${signature}`,
    status,
  }
}

/** The signature in the encrypted content of a reasoning item; empty if the gateway did not write the item. */
export function readSignature(encrypted: unknown): string {
  return typeof encrypted === 'string' && encrypted.startsWith(SIGNATURE) ? encrypted.slice(SIGNATURE.length) : ''
}

/** An output item of type `message`. */
export function writeMessageItem(id: string, content: readonly JsonObject[], status: string): JsonObject {
  return { type: 'message', id, status, role: 'assistant', content }
}

/** An output item of type `function_call`. `args` is JSON text. */
export function writeCall(id: string, name: string, args: string, status: string): JsonObject {
  return { type: 'function_call', id, call_id: id, ...splitNamespace(name), arguments: args, status }
}

interface ResponseParts {
  readonly id: string
  readonly createdS: number
  readonly model: string
  readonly output: readonly JsonObject[]
  /** undefined while the response is in progress. */
  readonly stop: Stop | undefined
  readonly usage: RawUsage | undefined
}

/** The response object, with all members that SDKs expect to be present. */
export function writeResponse({ id, createdS, model, output, stop, usage }: ResponseParts): JsonObject {
  const status = stop === undefined ? 'in_progress' : statusOf(stop)
  return {
    id,
    object: 'response',
    created_at: createdS,
    status,
    error: null,
    incomplete_details: status === 'incomplete' ? { reason: stop === 'filtered' ? 'content_filter' : 'max_output_tokens' } : null,
    instructions: null,
    metadata: {},
    model,
    output,
    parallel_tool_calls: true,
    temperature: null,
    tool_choice: 'auto',
    tools: [],
    top_p: null,
    usage: usage === undefined ? null : writeResponsesUsage(usage),
  }
}

/** The `status` of a finished response. */
export function statusOf(stop: Stop): 'completed' | 'incomplete' {
  return stop === 'maxTokens' || stop === 'contextWindow' || stop === 'filtered' ? 'incomplete' : 'completed'
}

/** `input_tokens` includes cached tokens (llm.md §7.9). */
function writeResponsesUsage(usage: RawUsage): JsonObject {
  const { output = 0, cacheRead, cacheWrite, reasoning } = usage
  const input = inputWithCache(usage) ?? 0
  return {
    input_tokens: input,
    input_tokens_details: compact({ cached_tokens: cacheRead ?? 0, cache_write_tokens: cacheWrite }),
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning ?? 0 },
    total_tokens: Math.max(usage.total ?? 0, input + output),
  }
}
