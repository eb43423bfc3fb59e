/** Types of requests by the end of their path, as the vendors' SDKs call them. */
export const chatRoutes = {
  '/chat/completions': 'Completions',
  '/responses': 'Responses',
  '/embeddings': 'Embeddings',
  '/rerank': 'Rerank',
  '/moderations': 'Moderations',
  '/messages': 'Messages',
  '/messages/count_tokens': 'TokenCount',
  ':generateContent': 'Gemini',
  ':streamGenerateContent': 'Gemini',
  ':countTokens': 'Gemini',
  ':embedContent': 'Gemini',
  ':batchEmbedContents': 'Gemini',
} as const
