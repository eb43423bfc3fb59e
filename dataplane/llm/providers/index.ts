import type { NamedLLMProvider } from '#gen/config/types.ts'
import { createProviderA } from './providerA.ts'
import { createProviderB } from './providerB.ts'
import { createProviderC } from './providerC.ts'
import { createProviderD } from './providerD.ts'
import { createProviderE } from './providerE.ts'
import { createProviderF } from './providerF.ts'
import { providerKinds, type Provider, type ProviderKind, type ProviderSettings } from './types.ts'

const factories: { readonly [K in ProviderKind]: (settings: ProviderSettings<K>) => Provider } = {
  providerA: createProviderA,
  providerB: createProviderB,
  providerC: createProviderC,
  providerD: createProviderD,
  providerE: createProviderE,
  providerF: createProviderF,
}

/** The provider that the config names; undefined when it names none. */
export function createProvider(config: Omit<NamedLLMProvider, 'name'>): Provider | undefined {
  const kind = providerKinds.find((name) => config[name] !== undefined)
  return kind === undefined ? undefined : create(kind, config)
}

function create<K extends ProviderKind>(kind: K, config: Omit<NamedLLMProvider, 'name'>): Provider | undefined {
  const settings = (config as { readonly [P in ProviderKind]?: ProviderSettings<P> })[kind]
  return settings && factories[kind](settings)
}
