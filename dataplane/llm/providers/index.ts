import type { NamedLLMProvider } from '#gen/config/types.ts'
import { createProviderA } from './openai.ts'
import { createProviderB } from './azure-openai.ts'
import { createProviderC } from './anthropic.ts'
import { createProviderD } from './gemini.ts'
import { createProviderE } from './vertex-ai.ts'
import { createProviderF } from './bedrock.ts'
import { providerKinds, type Provider, type ProviderKind } from './types.ts'

type Config = Omit<NamedLLMProvider, 'name'>

const factories: { readonly [K in ProviderKind]: (config: Config) => Provider | undefined } = {
  providerA: ({ providerA }) => providerA && createProviderA(providerA),
  providerB: ({ providerB }) => providerB && createProviderB(providerB),
  providerC: ({ providerC }) => providerC && createProviderC(providerC),
  providerD: ({ providerD }) => providerD && createProviderD(providerD),
  providerE: ({ providerE }) => providerE && createProviderE(providerE),
  providerF: ({ providerF }) => providerF && createProviderF(providerF),
}

/** The provider that the config names; undefined when it names none. */
export function createProvider(config: Config): Provider | undefined {
  const kind = providerKinds.find((name) => config[name] !== undefined)
  return kind && factories[kind](config)
}
