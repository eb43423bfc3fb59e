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
  'Embeddings -> Titan: a list of one text is that text': {
    from: 'embeddings',
    to: 'titanEmbeddings',
    body: { input: ['a'], encoding_format: 'base64' },
    is: { inputText: 'a', embeddingTypes: ['float'] },
  },
  'Embeddings -> Titan: the first generation gets the text only': {
    from: 'embeddings',
    to: 'titanEmbeddings',
    context: { model: 'amazon.titan-embed-text-v1' },
    body: { input: ['a'], encoding_format: 'base64', dimensions: 256 },
    is: { inputText: 'a' },
  },
  'Embeddings -> Titan: several texts are rejected with the reason': {
    from: 'embeddings',
    to: 'titanEmbeddings',
    body: { input: ['a', 'b'] },
    error: 'input has 2 texts, but this model embeds one text per request; send one request for each text',
  },
  'Embeddings -> Titan: an empty list is rejected': { from: 'embeddings', to: 'titanEmbeddings', body: { input: [] }, error: 'input must be' },
  'Embeddings -> Nova: a list of one text is that text': {
    from: 'embeddings',
    to: 'novaEmbeddings',
    body: { input: ['a'] },
    is: { taskType: 'SINGLE_EMBEDDING', singleEmbeddingParams: { embeddingPurpose: 'GENERIC_INDEX', text: { truncationMode: 'END', value: 'a' } } },
  },
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
