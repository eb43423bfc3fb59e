import { messagesEntry } from '../messages/entry.ts'
import type { ClientFormatEntry } from '../../common/types.ts'

/** Token counting of the Messages API: requests are Messages requests, responses have no text. */
export const countEntry: ClientFormatEntry = {
  ...messagesEntry,
  format: 'tokenCount',
  title: 'TokenCount',
  isStreaming: () => false,
  flattenResponse: () => [],
  replaceChoices: (body) => body,
}
