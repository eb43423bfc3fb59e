import type { NamedLLMProvider } from '#gen/config/types.ts'
import { createAnthropic } from './anthropic.ts'
import { createAzureOpenai } from './azure-openai.ts'
import { createBedrock } from './bedrock.ts'
import { createCustom, createPreset } from './described.ts'
import { createGemini } from './gemini.ts'
import { createOpenai } from './openai.ts'
import type { Provider, ProviderKind, ProviderSettings } from './types.ts'
import { createVertexAi } from './vertex-ai.ts'

/** Every provider, by its field in the config. If a config sets several fields, the first one here wins. */
const factories: { readonly [K in ProviderKind]: (settings: ProviderSettings<K>) => Provider } = {
  providerA: createOpenai,
  providerB: createAzureOpenai,
  providerC: createAnthropic,
  providerD: createGemini,
  providerE: createVertexAi,
  providerF: createBedrock,
}
/** Fields of all providers in the config. */
export const kinds = Object.keys(factories) as readonly ProviderKind[]

type Config = Pick<NamedLLMProvider, ProviderKind | 'preset' | 'model' | 'custom'>

/** Creates the provider that a config selects; undefined if it selects none. */
export function createProvider(config: Config): Provider | undefined {
  if (config.preset !== undefined) return createPreset(config.preset, config.model)
  if (config.custom !== undefined) return createCustom(config.custom)
  const kind = kinds.find((name) => config[name] !== undefined)
  return kind && create(kind, config[kind])
}

function create<K extends ProviderKind>(kind: K, settings: Config[K]): Provider | undefined {
  return settings && factories[kind](settings)
}
