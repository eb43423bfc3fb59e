import { ADDRESS_TYPE, RESOURCE_TYPE } from '../names.ts'
import { messageKinds, type MessageKind } from './message-kinds.ts'

/** Type URL of the messages of a kind. */
export function typeUrlOf(kind: MessageKind): string {
  return kind === 'service' ? ADDRESS_TYPE : RESOURCE_TYPE
}

/** Name of a message on the config stream: `<kind>/<key>`, because keys are unique only within their kind. */
export function wireNameOf(kind: MessageKind, key: string): string {
  return `${kind}/${key}`
}

/** Kind and key of a name on the config stream; undefined if the kind is unknown or the key is empty. */
export function parseWireName(name: string): { kind: MessageKind; key: string } | undefined {
  const slash = name.indexOf('/')
  const kind = name.slice(0, Math.max(slash, 0))
  const key = name.slice(slash + 1)
  return Object.hasOwn(messageKinds, kind) && key !== '' ? { kind: kind as MessageKind, key } : undefined
}
