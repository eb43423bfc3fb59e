import { inside, objectsOf } from '../common/read.ts'
import type { JsonObject } from '../common/types.ts'
import { BRIDGE } from './prefill.ts'
import type { TargetRules } from './types.ts'

/** The messages of a Chat Completions request in the order that the target accepts; the same list if they are. */
export function fitOrder(messages: readonly unknown[], { takesUserAfterResults, prefill }: TargetRules['roles']): readonly unknown[] {
  const bridged = takesUserAfterResults || !messages.some((_, at) => isAfterResult(messages, at)) ? messages : bridge(messages)
  return prefill === 'prefix' ? markPrefill(bridged) : bridged
}

const isAfterResult = (messages: readonly unknown[], at: number): boolean =>
  inside(messages[at])['role'] === 'user' && inside(messages[at - 1])['role'] === 'tool'

const spoken: JsonObject = { role: 'assistant', content: BRIDGE }

/** Puts a message of the assistant between results and a message of the user. */
const bridge = (messages: readonly unknown[]): unknown[] => messages.flatMap((message, at) => (isAfterResult(messages, at) ? [spoken, message] : [message]))

/** Marks a last message of the assistant as one that the response continues. */
function markPrefill(messages: readonly unknown[]): readonly unknown[] {
  const last = inside(messages.at(-1))
  if (last['role'] !== 'assistant' || last['prefix'] !== undefined || objectsOf(last['tool_calls']).length > 0) return messages
  return [...messages.slice(0, -1), { ...last, prefix: true }]
}
