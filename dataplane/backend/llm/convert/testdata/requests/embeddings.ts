import type { RequestRows } from './row.ts'

/** Expected conversions of Embeddings requests. */
export const embeddingsRows: RequestRows = {
  'Embeddings -> Vertex AI': {
    from: 'embeddings',
    to: 'predictEmbeddings',
    body: { input: ['a', 'b'], dimensions: 3, title: 't' },
    is: {
      instances: [
        { content: 'a', task_type: 'RETRIEVAL_QUERY', title: 't' },
        { content: 'b', task_type: 'RETRIEVAL_QUERY', title: 't' },
      ],
      parameters: { outputDimensionality: 3 },
    },
  },
  'Embeddings -> Titan': {
    from: 'embeddings',
    to: 'titanEmbeddings',
    body: { input: 'a', dimensions: 256, normalize: true, encoding_format: 'float' },
    is: { inputText: 'a', dimensions: 256, normalize: true, embeddingTypes: ['float'] },
  },
  'Embeddings -> Titan: a list of texts is rejected': { from: 'embeddings', to: 'titanEmbeddings', body: { input: ['a', 'b'] }, error: 'unsupported conversion' },
  'Embeddings -> Cohere: a list of texts is converted': {
    from: 'embeddings',
    to: 'cohereEmbeddings',
    context: { model: 'cohere.embed-v4:0' },
    body: { input: ['a', 'b'], dimensions: 256, truncate: 'END' },
    is: { texts: ['a', 'b'], input_type: 'search_query', truncate: 'END', output_dimension: 256 },
  },
  'Embeddings -> Nova': {
    from: 'embeddings',
    to: 'novaEmbeddings',
    body: { input: 'a', dimensions: 256 },
    is: {
      taskType: 'SINGLE_EMBEDDING',
      singleEmbeddingParams: { embeddingPurpose: 'GENERIC_INDEX', embeddingDimension: 256, text: { truncationMode: 'END', value: 'a' } },
    },
  },
  'Embeddings -> Vertex AI: a list of tokens is rejected': { from: 'embeddings', to: 'predictEmbeddings', body: { input: [1, 2] }, error: 'token lists' },
}
