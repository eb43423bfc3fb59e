import schema from '#gen/config/schema.json' with { type: 'json' }
import { messageKinds, type MessageKind } from '#api/config/message-kinds.ts'
import type { Definitions } from '#api/schema.ts'
import { toRealNames } from '#api/v1alpha1/real-names.ts'

const definitions = schema.$defs as unknown as Definitions

/** A message with the real names of vendors, for output that people read; the message itself if it has none. */
export const withRealNames = <T>(kind: MessageKind, message: T): T => toRealNames(message, messageKinds[kind], definitions)
