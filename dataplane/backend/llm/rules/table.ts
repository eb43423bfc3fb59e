import type { Target } from '../common/types.ts'
import type { IdRule, NameRule, TargetRules } from './types.ts'

/**
 * What each API enforces (llm.md §7.15), whatever the model; families.ts holds what differs by model. Sources: the API
 * references and SDKs of the vendors, and public reports, checked 2026-11-28.
 */

const anyId: IdRule = { pattern: /^[^\s]{1,64}$/, max: 64, isUnique: false }
const plainId: IdRule = { pattern: /^[a-zA-Z0-9_-]{1,64}$/, max: 64, isUnique: true }
const openaiName: NameRule = { pattern: /^[a-zA-Z0-9_-]{1,64}$/, forbidden: /[^a-zA-Z0-9_-]/g, max: 64 }
const googleName: NameRule = { pattern: /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/, forbidden: /[^a-zA-Z0-9_-]/g, max: 64 }
const converseName: NameRule = { pattern: /^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/, forbidden: /[^a-zA-Z0-9_-]/g, max: 64 }
const commonImages = ['image/png', 'image/jpeg', 'image/webp', 'image/gif']
const googleImages = ['image/png', 'image/jpeg', 'image/webp', 'image/heic', 'image/heif']

const openai: TargetRules = {
  // Only the length is checked: 40 for some models (microsoft/autogen#6377).
  ids: { pattern: /^[^\s]{1,40}$/, max: 40, isUnique: false },
  names: openaiName,
  // A root that is no object, or has a union, is rejected (langchain-ai/langchainjs#9804, chatanywhere/GPT_API_free#403).
  schema: {
    isNeeded: false,
    needsObject: true,
    needsProperties: true,
    // mark3labs/mcphost#35, smallmain/vscode-unify-chat-provider#162, oomkapwn/enquire-mcp#354
    needsItems: true,
    isChecked: true,
    hasRootUnions: false,
    dialect: 'json',
    rootDrops: ['enum', 'const', 'not'],
    hasStrict: true,
    output: 'schema',
    isClosed: false,
  },
  roles: {
    isApart: false,
    hasDeveloper: true,
    hasNames: true,
    hasRefusal: true,
    late: 'inPlace',
    isMerged: false,
    needsTurn: false,
    startsWithUser: false,
    takesUserAfterResults: true,
    prefill: 'accepted',
  },
  blanks: { isDropped: false, takesEnd: true, result: undefined },
  user: { max: 64, isOpaque: false },
  media: { images: commonImages, hasImageUrls: true, documents: 'files' },
  tokenLimit: 'max_completion_tokens',
  reasoning: {
    field: 'effort',
    efforts: undefined,
    withTools: 'any',
    hasBudget: false,
    isAdaptive: false,
    off: 'leave',
    history: 'none',
    forcesTools: 'always',
  },
  sampling: { maxTemperature: 2, isFixed: 'never', takesBoth: true, topK: 'never' },
  stops: { max: 4, takesBlank: true },
  cache: { marker: 'none', max: 0, hasTtl: false },
  betas: { place: 'none', values: undefined, countValues: undefined, renames: {} },
  // `?beta=true` is a version of the Messages API.
  query: { only: undefined, never: ['beta'] },
  drops: [],
  renames: {},
  asksStreamUsage: true,
  thoughts: 'none',
}

/** Servers of other vendors that implement the Chat Completions API. */
const compatible: TargetRules = {
  ...openai,
  ids: anyId,
  // Mistral rejects the other field, Ollama ignores it (nextcloud/integration_openai#426).
  tokenLimit: 'max_tokens',
  // Templates of open models and Mistral know no role `developer`.
  roles: { ...openai.roles, hasDeveloper: false, hasRefusal: false },
  schema: {
    isNeeded: false,
    needsObject: false,
    needsProperties: false,
    needsItems: false,
    isChecked: false,
    hasRootUnions: true,
    dialect: 'json',
    rootDrops: [],
    hasStrict: true,
    output: 'schema',
    isClosed: false,
  },
  stops: { max: Infinity, takesBlank: true },
  user: { max: Infinity, isOpaque: false },
  reasoning: { ...openai.reasoning, history: 'unknown' },
  // vLLM and OpenRouter read it, Mistral and Groq reject it.
  sampling: { ...openai.sampling, topK: 'native' },
  // OpenRouter and LiteLLM read it.
  cache: { marker: 'native', max: Infinity, hasTtl: true },
}

const anthropic: TargetRules = {
  ids: plainId,
  names: { ...openaiName, pattern: /^[a-zA-Z0-9_-]{1,128}$/, max: 128 },
  // A root with a union is rejected (anthropics/claude-code#5973), and what is not valid in draft 2020-12 (Dokploy/mcp#74, kintone/mcp-server#553).
  // Closed schemas: veryfront/veryfront-code#3918, BerriAI/litellm#35808
  schema: {
    isNeeded: true,
    needsObject: true,
    needsProperties: false,
    needsItems: false,
    isChecked: true,
    hasRootUnions: false,
    dialect: 'json',
    rootDrops: [],
    hasStrict: true,
    output: 'schema',
    isClosed: true,
  },
  roles: {
    isApart: true,
    hasDeveloper: false,
    hasNames: true,
    hasRefusal: false,
    late: 'user',
    isMerged: true,
    // Instructions alone are no message (BerriAI/litellm 1.110.2).
    needsTurn: true,
    startsWithUser: false,
    takesUserAfterResults: true,
    prefill: 'accepted',
  },
  // tailcallhq/forgecode#1872, langchain-ai/langchain#35071
  blanks: { isDropped: true, takesEnd: false, result: undefined },
  // BerriAI/litellm#10106
  user: { max: 256, isOpaque: true },
  media: { images: commonImages, hasImageUrls: true, documents: 'pdf' },
  tokenLimit: 'max_tokens',
  reasoning: {
    field: 'effort',
    efforts: undefined,
    withTools: 'any',
    hasBudget: true,
    isAdaptive: false,
    off: 'leave',
    history: 'signed',
    forcesTools: 'withoutBudget',
  },
  sampling: { maxTemperature: 1, isFixed: 'reasoning', takesBoth: true, topK: 'sent' },
  stops: { max: Infinity, takesBlank: false },
  cache: { marker: 'cache_control', max: 4, hasTtl: true },
  betas: { place: 'header', values: undefined, countValues: undefined, renames: {} },
  query: { only: undefined, never: [] },
  drops: [],
  renames: {},
  asksStreamUsage: false,
  thoughts: 'none',
}

/** Keys of a query that Google's API front end knows and that do not change the response. Others are 400 (`Unknown name`). */
const googleQuery = { only: ['key', 'access_token', 'quotaUser', 'prettyPrint'], never: [] }
/** Values of `anthropic-beta` without which tools of the provider are rejected. */
const toolBetas = ['computer-use-2025-01-24', 'computer-use-2025-11-24', 'tool-search-tool-2025-10-19']
const renames = { 'advanced-tool-use-2025-11-20': 'tool-search-tool-2025-10-19' }

const gemini: TargetRules = {
  ...openai,
  ids: anyId,
  names: googleName,
  roles: { ...openai.roles, hasDeveloper: false, hasRefusal: false, needsTurn: true },
  blanks: { isDropped: true, takesEnd: true, result: undefined },
  media: { images: googleImages, hasImageUrls: true, documents: 'files' },
  tokenLimit: 'max_tokens',
  stops: { max: 5, takesBlank: true },
  query: googleQuery,
  // liliMozi/openhanako#394, ed-donner/agents#45
  drops: ['store', 'metadata'],
  // Schemas of functions become those of the native API, which has no `const`, `$ref` or list of types (taylorwilsdon/google_workspace_mcp#1099).
  schema: {
    isNeeded: false,
    needsObject: true,
    needsProperties: false,
    // Google's subset is written anew, with items.
    needsItems: false,
    isChecked: false,
    hasRootUnions: false,
    dialect: 'google',
    rootDrops: [],
    hasStrict: true,
    output: 'schema',
    isClosed: false,
  },
}

/** The rules of each target. */
export const table: Readonly<Record<Target, TargetRules>> = {
  openai,
  azure: openai,
  compatible,
  responses: {
    ...openai,
    ids: { ...anyId },
    names: { ...openaiName, pattern: /^[a-zA-Z0-9_-]{1,128}$/, max: 128 },
    tokenLimit: 'max_output_tokens',
    asksStreamUsage: false,
  },
  anthropic,
  vertexClaude: {
    ...anthropic,
    media: { ...anthropic.media, hasImageUrls: false },
    betas: {
      place: 'header',
      // Vertex AI rejects values that it does not know (QuantumNous/new-api#2975).
      values: new Set([
        ...toolBetas,
        'compact-2026-01-12',
        'context-1m-2025-08-07',
        'context-management-2025-06-27',
        'dev-full-thinking-2025-05-14',
        'effort-2025-11-24',
        'extended-cache-ttl-2025-04-11',
        'fine-grained-tool-streaming-2025-05-14',
        'interleaved-thinking-2025-05-14',
        'output-128k-2025-02-19',
        'token-efficient-tools-2025-02-19',
        'web-search-2025-03-05',
      ]),
      countValues: new Set(toolBetas),
      renames,
    },
    query: googleQuery,
  },
  gemini,
  vertex: gemini,
  converse: {
    ...anthropic,
    names: converseName,
    // langgenius/dify#12340
    roles: { ...anthropic.roles, startsWithUser: true },
    schema: { ...anthropic.schema, hasStrict: false },
    blanks: { isDropped: true, takesEnd: false, result: '(no content)' },
    media: { images: commonImages, hasImageUrls: false, documents: 'files' },
    tokenLimit: 'maxTokens',
    cache: { marker: 'cachePoint', max: 4, hasTtl: false },
    betas: {
      place: 'body',
      // Bedrock rejects values that it does not know (anthropics/claude-code#49370).
      values: new Set([
        'computer-use-2025-01-24',
        'computer-use-2025-11-24',
        'context-1m-2025-08-07',
        'context-management-2025-06-27',
        'dev-full-thinking-2025-05-14',
        'effort-2025-11-24',
        'interleaved-thinking-2025-05-14',
        'output-128k-2025-02-19',
        'token-efficient-tools-2025-02-19',
        'tool-examples-2025-10-29',
        'tool-search-tool-2025-10-19',
      ]),
      countValues: new Set(),
      renames,
    },
    query: { only: [], never: [] },
  },
}
