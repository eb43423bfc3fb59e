/**
 * LLM providers as data (llm.md §4.4): where a provider is, which APIs it has, and how it differs from other servers with the Chat Completions API. A row
 * is a value of `preset`. Sources: the references of the vendors, checked 2026-11-28, and what `source` names beside them.
 */

/** APIs of a server. */
export const SERVER_FORMATS = ['Completions', 'Responses', 'Messages', 'Embeddings'] as const
export const TOKEN_FIELDS = ['max_tokens', 'max_completion_tokens'] as const
export const CALL_IDS = ['Any', 'NineAlphanumeric'] as const
export const REASONING_FIELDS = ['Effort', 'Thinking', 'EnableThinking', 'None'] as const
export const REASONING_HISTORY = ['Text', 'None'] as const
export const OUTPUT_FORMATS = ['Schema', 'Object', 'None'] as const

/** How a server differs from others with the Chat Completions API. A cell that is not set has the rule of the model's family. */
export interface ServerRules {
  readonly tokenLimit?: (typeof TOKEN_FIELDS)[number]
  /** Fields that the server rejects. */
  readonly drop?: readonly string[]
  /** Fields that the server has under another name. */
  readonly rename?: Readonly<Record<string, string>>
  readonly messageNames?: boolean
  readonly developerRole?: boolean
  readonly toolCallIds?: (typeof CALL_IDS)[number]
  readonly reasoning?: (typeof REASONING_FIELDS)[number]
  readonly reasoningHistory?: (typeof REASONING_HISTORY)[number]
  /** Values of the effort, in rising order. */
  readonly efforts?: readonly string[]
  readonly outputFormat?: (typeof OUTPUT_FORMATS)[number]
  readonly strictTools?: boolean
  readonly imageUrls?: boolean
  readonly maxStops?: number
  readonly streamUsage?: boolean
}

export interface Preset {
  readonly title: string
  /** Host of the API, over TLS. Not set: the user's own. */
  readonly host?: string
  /** Port that the server listens on by default, if it is the user's own. */
  readonly port?: number
  /** The user's own host has TLS. */
  readonly hasTls?: boolean
  /** Path in front of those of OpenAI's APIs. */
  readonly base: string
  readonly formats: readonly (typeof SERVER_FORMATS)[number][]
  /** Path of Messages, if it is not below `base`. */
  readonly messages?: string
  readonly rules?: ServerRules
  /** `gen_ai.provider.name`, by which price catalogs list models, if it is not the name of the preset. */
  readonly system?: string
  /** What LiteLLM writes in front of its models. */
  readonly litellm?: readonly string[]
  readonly source: string
}

const chinese: ServerRules = { reasoning: 'Thinking', reasoningHistory: 'Text' }
/** GLM: no schemas of responses (BerriAI/litellm 1.110.2). */
const glm: ServerRules = { ...chinese, outputFormat: 'Object' }

const rows = {
  groq: {
    title: 'Groq',
    host: 'api.groq.com',
    base: '/openai/v1',
    formats: ['Completions', 'Responses'],
    rules: { drop: ['logprobs', 'top_logprobs', 'logit_bias'], messageNames: false, reasoningHistory: 'None', maxStops: 4 },
    litellm: ['groq'],
    source: 'console.groq.com/docs/openai; janhq/jan#8136',
  },
  mistral: {
    title: 'Mistral',
    host: 'api.mistral.ai',
    base: '/v1',
    formats: ['Completions', 'Embeddings'],
    rules: {
      tokenLimit: 'max_tokens',
      rename: { seed: 'random_seed' },
      drop: ['logprobs', 'top_logprobs', 'logit_bias', 'user', 'store', 'service_tier'],
      messageNames: false,
      toolCallIds: 'NineAlphanumeric',
      reasoningHistory: 'None',
      strictTools: false,
      streamUsage: false,
    },
    system: 'mistral_ai',
    litellm: ['mistral'],
    source: '@mistralai/mistralai 2.7.0; anomalyco/opencode#1680; BerriAI/litellm#6696',
  },
  deepseek: {
    title: 'DeepSeek',
    host: 'api.deepseek.com',
    base: '',
    formats: ['Completions', 'Messages'],
    messages: '/anthropic/v1/messages',
    rules: { tokenLimit: 'max_tokens', reasoning: 'Thinking', efforts: ['none', 'high', 'max'], reasoningHistory: 'Text', outputFormat: 'Object' },
    litellm: ['deepseek'],
    source: 'api-docs.deepseek.com; danny-avila/LibreChat#12836',
  },
  xai: {
    title: 'xAI',
    host: 'api.x.ai',
    base: '/v1',
    formats: ['Completions', 'Responses'],
    rules: { tokenLimit: 'max_completion_tokens', strictTools: false },
    system: 'x_ai',
    litellm: ['xai'],
    source: 'docs.x.ai; BerriAI/litellm 1.110.2',
  },
  together: {
    title: 'Together AI',
    host: 'api.together.ai',
    base: '/v1',
    formats: ['Completions', 'Embeddings'],
    rules: { tokenLimit: 'max_tokens' },
    litellm: ['together_ai'],
    source: 'docs.together.ai; together 3.1.1',
  },
  fireworks: {
    title: 'Fireworks AI',
    host: 'api.fireworks.ai',
    base: '/inference/v1',
    formats: ['Completions', 'Responses', 'Messages', 'Embeddings'],
    rules: { tokenLimit: 'max_tokens' },
    litellm: ['fireworks_ai'],
    source: 'docs.fireworks.ai',
  },
  openrouter: {
    title: 'OpenRouter',
    host: 'openrouter.ai',
    base: '/api/v1',
    formats: ['Completions', 'Responses', 'Messages', 'Embeddings'],
    litellm: ['openrouter'],
    source: 'openrouter.ai/docs',
  },
  baseten: {
    title: 'Baseten',
    host: 'inference.baseten.co',
    base: '/v1',
    formats: ['Completions'],
    rules: { tokenLimit: 'max_tokens' },
    litellm: ['baseten'],
    source: 'docs.baseten.co; agentgateway/agentgateway 75b4e6ce',
  },
  cerebras: {
    title: 'Cerebras',
    host: 'api.cerebras.ai',
    base: '/v1',
    formats: ['Completions'],
    rules: { drop: ['presence_penalty', 'frequency_penalty', 'logit_bias', 'parallel_tool_calls', 'service_tier'], reasoningHistory: 'None' },
    litellm: ['cerebras'],
    source: 'inference-docs.cerebras.ai; anomalyco/opencode#5036',
  },
  deepinfra: {
    title: 'DeepInfra',
    host: 'api.deepinfra.com',
    base: '/v1/openai',
    formats: ['Completions', 'Messages', 'Embeddings'],
    messages: '/anthropic/v1/messages',
    rules: { tokenLimit: 'max_tokens' },
    litellm: ['deepinfra'],
    source: 'docs.deepinfra.com; vercel/ai (2026-08)',
  },
  huggingface: {
    title: 'Hugging Face Inference Providers',
    host: 'router.huggingface.co',
    base: '/v1',
    formats: ['Completions', 'Responses'],
    rules: { tokenLimit: 'max_tokens' },
    litellm: ['huggingface'],
    source: 'huggingface.co/docs/inference-providers',
  },
  nvidia: {
    title: 'NVIDIA NIM',
    host: 'integrate.api.nvidia.com',
    base: '/v1',
    formats: ['Completions', 'Embeddings'],
    rules: { tokenLimit: 'max_tokens' },
    litellm: ['nvidia_nim'],
    source: 'docs.api.nvidia.com',
  },
  perplexity: {
    title: 'Perplexity',
    host: 'api.perplexity.ai',
    base: '/v1',
    formats: ['Responses', 'Embeddings'],
    litellm: ['perplexity'],
    source: 'docs.perplexity.ai: Chat Completions ended 2026-09-27',
  },
  cohere: {
    title: 'Cohere',
    host: 'api.cohere.ai',
    base: '/compatibility/v1',
    formats: ['Completions', 'Embeddings'],
    rules: { tokenLimit: 'max_tokens', efforts: ['none', 'high'], maxStops: 5 },
    litellm: ['cohere', 'cohere_chat'],
    source: 'docs.cohere.com, compatibility API; cohere 7.3.1',
  },
  moonshot: {
    title: 'Moonshot AI (Kimi)',
    host: 'api.moonshot.ai',
    base: '/v1',
    formats: ['Completions', 'Messages'],
    messages: '/anthropic/v1/messages',
    rules: { tokenLimit: 'max_tokens', ...chinese },
    litellm: ['moonshot'],
    source: 'platform.moonshot.ai/docs',
  },
  zhipu: {
    title: 'Zhipu (GLM), China',
    host: 'open.bigmodel.cn',
    base: '/api/paas/v4',
    formats: ['Completions', 'Embeddings'],
    rules: { tokenLimit: 'max_tokens', ...glm },
    source: 'docs.bigmodel.cn',
  },
  zai: {
    title: 'Z.ai (GLM)',
    host: 'api.z.ai',
    base: '/api/paas/v4',
    formats: ['Completions', 'Embeddings'],
    rules: { tokenLimit: 'max_tokens', ...glm },
    litellm: ['zai'],
    source: 'docs.z.ai',
  },
  minimax: {
    title: 'MiniMax',
    host: 'api.minimax.io',
    base: '/v1',
    formats: ['Completions', 'Responses', 'Messages'],
    messages: '/anthropic/v1/messages',
    rules: {
      tokenLimit: 'max_completion_tokens',
      drop: ['presence_penalty', 'frequency_penalty', 'logit_bias', 'seed', 'tool_choice'],
      reasoning: 'None',
      reasoningHistory: 'Text',
      outputFormat: 'None',
      strictTools: false,
    },
    litellm: ['minimax'],
    source: 'platform.minimax.io/docs; agentscope documentation',
  },
  dashscope: {
    title: 'Alibaba Cloud Model Studio (DashScope)',
    host: 'dashscope-intl.aliyuncs.com',
    base: '/compatible-mode/v1',
    formats: ['Completions', 'Responses', 'Messages', 'Embeddings'],
    messages: '/apps/anthropic/v1/messages',
    rules: { tokenLimit: 'max_tokens', reasoning: 'EnableThinking', reasoningHistory: 'Text' },
    litellm: ['dashscope'],
    source: 'alibabacloud.com/help/model-studio',
  },
  sambanova: {
    title: 'SambaNova',
    host: 'api.sambanova.ai',
    base: '/v1',
    formats: ['Completions', 'Embeddings'],
    rules: { tokenLimit: 'max_tokens' },
    litellm: ['sambanova'],
    source: 'docs.sambanova.ai',
  },
  novita: {
    title: 'Novita AI',
    host: 'api.novita.ai',
    base: '/openai/v1',
    formats: ['Completions', 'Embeddings'],
    rules: { tokenLimit: 'max_tokens' },
    litellm: ['novita'],
    source: 'anomalyco/models.dev (2026-07)',
  },
  databricks: {
    title: 'Databricks',
    hasTls: true,
    port: 443,
    base: '/ai-gateway/mlflow/v1',
    formats: ['Completions', 'Embeddings'],
    rules: { tokenLimit: 'max_tokens' },
    litellm: ['databricks'],
    source: 'docs.databricks.com, AI Gateway',
  },
  ollama: {
    title: 'Ollama',
    port: 11434,
    base: '/v1',
    formats: ['Completions', 'Responses', 'Embeddings'],
    // A tool choice makes requests hang (BerriAI/litellm 1.110.2).
    rules: { tokenLimit: 'max_tokens', drop: ['tool_choice'], imageUrls: false },
    litellm: ['ollama', 'ollama_chat'],
    source: 'docs.ollama.com, OpenAI compatibility; nextcloud/integration_openai#426',
  },
  vllm: {
    title: 'vLLM',
    port: 8000,
    base: '/v1',
    formats: ['Completions', 'Responses', 'Embeddings'],
    rules: { reasoningHistory: 'Text' },
    litellm: ['hosted_vllm', 'vllm'],
    source: 'docs.vllm.ai; vllm-project/vllm#33402; BerriAI/litellm#41380',
  },
  sglang: {
    title: 'SGLang',
    port: 30000,
    base: '/v1',
    formats: ['Completions', 'Responses', 'Embeddings'],
    rules: { reasoningHistory: 'Text' },
    source: 'docs.sglang.ai; sglang 0.5.23',
  },
  llamacpp: {
    title: 'llama.cpp',
    port: 8080,
    base: '/v1',
    formats: ['Completions', 'Responses', 'Embeddings'],
    rules: { tokenLimit: 'max_tokens', reasoningHistory: 'Text' },
    source: 'ggml-org/llama.cpp, tools/server/README.md',
  },
  lmstudio: {
    title: 'LM Studio',
    port: 1234,
    base: '/v1',
    formats: ['Completions', 'Responses', 'Embeddings'],
    rules: { tokenLimit: 'max_tokens' },
    litellm: ['lm_studio'],
    source: 'lmstudio.ai/docs',
  },
  tgi: {
    title: 'Text Generation Inference',
    port: 8080,
    base: '/v1',
    formats: ['Completions'],
    rules: { tokenLimit: 'max_tokens' },
    source: 'huggingface.co/docs/text-generation-inference, 3.3.7, archived 2026-03-21',
  },
} as const satisfies Readonly<Record<string, Preset>>

export type PresetName = keyof typeof rows
export const presets: Readonly<Record<PresetName, Preset>> = rows
export const PRESET_NAMES = Object.keys(rows) as PresetName[]
/** Presets of servers that users have at a host of their own. */
export const HOSTED_PRESETS = PRESET_NAMES.filter((name) => presets[name].host === undefined)

/** `gen_ai.provider.name` of a provider that is described in its config. */
export const CUSTOM_SYSTEM = 'custom'
export const systemOf = (name: PresetName): string => presets[name].system ?? name
