import schema from '#gen/config/schema.json' with { type: 'json' }
import { messageKinds, type MessageKind } from '#api/config/message-kinds.ts'
import type { Definitions } from '#api/schema.ts'
import { toRealNames } from '#api/v1alpha1/real-names.ts'

const definitions = schema.$defs as unknown as Definitions

/** A message with the real names of vendors, for output that people read; the message itself if it has none. */
export const withRealNames = <T>(kind: MessageKind, message: T): T => toRealNames(message, messageKinds[kind], definitions)

/** The section of a config dump that has the messages of a kind. */
export const dumpSectionOf = (kind: MessageKind): string => (kind.endsWith('y') ? `${kind.slice(0, -1)}ies` : `${kind}s`)
/** Kinds of messages by the section of a config dump that has them. */
export const dumpSections: ReadonlyMap<string, MessageKind> = new Map((Object.keys(messageKinds) as MessageKind[]).map((kind) => [dumpSectionOf(kind), kind]))
