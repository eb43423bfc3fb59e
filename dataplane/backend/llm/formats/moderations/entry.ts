import { embeddingsEntry } from '../embeddings/entry.ts'
import type { ClientFormatEntry } from '../../common/types.ts'

/** The model of a request that names none (API reference of OpenAI, create moderation). */
const DEFAULT_MODEL = 'omni-moderation-latest'

/** The Moderations API of OpenAI. Its input is that of embeddings, or a list of text and image parts (llm.md §7.17). */
export const moderationsEntry: ClientFormatEntry = {
  ...embeddingsEntry,
  format: 'moderations',
  title: 'Moderations',
  address: (body) => (body['model'] === undefined || body['model'] === null ? { ...body, model: DEFAULT_MODEL } : body),
  params: () => ({}),
}
