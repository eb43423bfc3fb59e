import { messageKinds, type MessageKind } from '#api/config/message-kinds.ts'
import type { MessageTypes } from '#gen/config/types.ts'
import type { ConfigMessage } from '../../model/translation.ts'

const kindOrder = Object.keys(messageKinds) as MessageKind[]

/** The messages of one Gateway while they are being collected; the first of a key stays. */
export class Messages {
  readonly #byKind = new Map<MessageKind, Map<string, object>>(kindOrder.map((kind) => [kind, new Map()]))

  add<K extends keyof MessageTypes>(kind: K, message: MessageTypes[K]): void {
    const messages = this.#byKind.get(kind)
    if (!messages?.has(message.key)) messages?.set(message.key, message)
  }

  has(kind: MessageKind, key: string): boolean {
    return this.#byKind.get(kind)?.has(key) ?? false
  }

  /** Sorted by kind and key. */
  list(): ConfigMessage[] {
    return kindOrder.flatMap((kind) =>
      [...(this.#byKind.get(kind) ?? [])].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([key, message]) => ({ kind, key, message })),
    )
  }
}
