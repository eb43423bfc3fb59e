import { messagesEntry } from '../messages/entry.ts'
import type { ClientFormatEntry } from '../../common/types.ts'

/** Count requests are messages requests; the answer has no text. */
export const countEntry: ClientFormatEntry = {
  ...messagesEntry,
  format: 'tokenCount',
  title: 'TokenCount',
  isStreaming: () => false,
  responseSegments: () => [],
  flattenResponse: () => [],
  replaceChoices: (body) => body,
}
