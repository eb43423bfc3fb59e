import { PRESET_NAMES, presets, type PresetName } from '#api/llm-presets.ts'
import { compact, literal, type ImportSource } from './source.ts'

/** Presets by the prefix of `model`. */
const presetOf: ReadonlyMap<string, PresetName> = new Map(PRESET_NAMES.flatMap((name) => (presets[name].litellm ?? []).map((prefix) => [prefix, name])))
/** Prefixes of other servers with the API of OpenAI, which need `api_base`. */
const compatible: ReadonlySet<string> = new Set(['openai_like', 'custom_openai', 'litellm_proxy'])

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
    default: {
      const preset = presetOf.get(prefix)
      if (preset === undefined) return base === undefined || !compatible.has(prefix) ? undefined : { openai: compact(common) }
      // LiteLLM knows no address of these servers but that of Ollama.
      if (base === undefined && presets[preset].host === undefined && preset !== 'ollama') return undefined
      return { preset: compact({ name: preset, ...common, model: toOwnName(preset, model) }) }
    }
  }
}

/** The name that a provider has for a model, where LiteLLM has another. */
function toOwnName(preset: PresetName, model: string): string {
  if (preset === 'fireworks' && !model.startsWith('accounts/')) return `accounts/fireworks/models/${model}`
  const [, provider, name] = (preset === 'huggingface' && /^([^/]+)\/([^/]+\/[^/]+)$/.exec(model)) || []
  return name === undefined ? model : `${name}:${provider}`
}

/** Models without a prefix are recognized by their names. */
function guessProvider(model: string): string {
  if (/^claude/i.test(model)) return 'anthropic'
  if (/^gemini/i.test(model)) return 'gemini'
  return /^(?:gpt|o\d|chatgpt|text-embedding|dall-e|whisper|tts)/i.test(model) ? 'openai' : ''
}
