import { completionsEntry } from './completions/entry.ts'
import { countEntry } from './count/entry.ts'
import { embeddingsEntry } from './embeddings/entry.ts'
import { geminiCountEntry, geminiEmbeddingsEntry, geminiEntry } from './gemini/entry.ts'
import { messagesEntry } from './messages/entry.ts'
import { moderationsEntry } from './moderations/entry.ts'
import { rerankEntry } from './rerank/entry.ts'
import { responsesEntry } from './responses/entry.ts'
import type { ClientFormat, ClientFormatEntry } from '../common/types.ts'

/** All client formats. */
export const clientFormats: Readonly<Record<ClientFormat, ClientFormatEntry>> = {
  completions: completionsEntry,
  messages: messagesEntry,
  responses: responsesEntry,
  embeddings: embeddingsEntry,
  tokenCount: countEntry,
  gemini: geminiEntry,
  geminiCount: geminiCountEntry,
  geminiEmbeddings: geminiEmbeddingsEntry,
  rerank: rerankEntry,
  moderations: moderationsEntry,
}
