import { compact, literal, type ImportSource } from './source.ts'

/** Base URLs of services with the API of OpenAI, by the prefix of `model`. */
const compatible: Readonly<Record<string, string>> = {
  deepseek: 'https://api.deepseek.com/v1',
  fireworks_ai: 'https://api.fireworks.ai/inference/v1',
  groq: 'https://api.groq.com/openai/v1',
  mistral: 'https://api.mistral.ai/v1',
  openrouter: 'https://openrouter.ai/api/v1',
  perplexity: 'https://api.perplexity.ai',
  together_ai: 'https://api.together.xyz/v1',
  xai: 'https://api.x.ai/v1',
}
/** Prefixes of servers that need `api_base`. */
const selfHosted: ReadonlySet<string> = new Set(['hosted_vllm', 'vllm', 'lm_studio', 'openai_like', 'custom_openai', 'text-completion-openai', 'litellm_proxy'])

/** A value of a LiteLLM config: `os.environ/NAME` becomes the placeholder `${NAME}`. */
export function value(text: string | undefined): string | undefined {
  const [, name] = /^os\.environ\/([A-Za-z_]\w*)$/.exec(text ?? '') ?? []
  return name === undefined ? text && literal(text) : `\${${name}}`
}

/** `{ <provider>: fields }` of the short form; undefined if the provider is not supported. */
export function importProvider(params: ImportSource): Record<string, unknown> | undefined {
  const full = params.text('model') ?? ''
  const slash = full.indexOf('/')
  const custom = params.text('custom_llm_provider')
  const prefix = custom ?? (slash < 0 ? guessProvider(full) : full.slice(0, slash))
  const model = literal(custom === undefined && slash >= 0 ? full.slice(slash + 1) : full)
  const apiKey = value(params.text('api_key'))
  const base = value(params.text('api_base') ?? params.text('base_url'))
  const common = { model, apiKey, url: base }
  switch (prefix) {
    case 'openai':
    case 'text-completion-openai':
      return { openai: compact(common) }
    case 'anthropic':
      return { anthropic: compact(common) }
    case 'gemini':
      return { gemini: compact(common) }
    case 'azure':
      return base === undefined
        ? undefined
        : { azureOpenAI: compact({ endpoint: base, deploymentName: model, apiVersion: value(params.text('api_version')), apiKey }) }
    case 'vertex_ai':
    case 'vertex_ai_beta': {
      const [projectId, region] = [value(params.text('vertex_project')), value(params.text('vertex_location'))]
      return projectId === undefined || region === undefined ? undefined : { vertexAI: compact({ ...common, projectId, region }) }
    }
    case 'bedrock':
      return {
        bedrock: compact({
          model: model.replace(/^(?:converse|invoke)\//, ''),
          region: value(params.text('aws_region_name')),
          accessKeyId: value(params.text('aws_access_key_id')),
          secretAccessKey: value(params.text('aws_secret_access_key')),
          sessionToken: value(params.text('aws_session_token')),
          url: base ?? value(params.text('aws_bedrock_runtime_endpoint')),
        }),
      }
    case 'ollama':
    case 'ollama_chat':
      return { openai: compact({ ...common, url: `${(base ?? 'http://localhost:11434').replace(/\/$/, '')}/v1` }) }
    default: {
      const url = base ?? compatible[prefix]
      return url === undefined || (compatible[prefix] === undefined && !selfHosted.has(prefix)) ? undefined : { openai: compact({ ...common, url }) }
    }
  }
}

/** Models without a prefix are recognized by their names. */
function guessProvider(model: string): string {
  if (/^claude/i.test(model)) return 'anthropic'
  if (/^gemini/i.test(model)) return 'gemini'
  return /^(?:gpt|o\d|chatgpt|text-embedding|dall-e|whisper|tts)/i.test(model) ? 'openai' : ''
}
