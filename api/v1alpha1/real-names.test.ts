import { describe, expect, test } from '@jest/globals'
import { configDefinitions } from '../config/definitions.ts'
import { definitions } from './definitions.ts'
import { realNameOf, renameInText, toNeutralNames } from './real-names.ts'

describe('toNeutralNames', () => {
  test('replaces every real name of a ProxyBackend, also within policies', () => {
    const guard = { region: 'us-east-1', identifier: 'i', version: '1', policies: { auth: { aws: {} } } }
    const written = {
      kind: 'ProxyBackend',
      spec: {
        ai: {
          groups: [
            {
              providers: [
                { name: 'a', openai: { model: 'openai' }, policies: { auth: { azure: { secretRef: { name: 's' } } } } },
                { name: 'b', azureOpenAI: { endpoint: 'e' } },
                { name: 'c', anthropic: {}, policies: { ai: { promptGuard: { request: [{ bedrockGuardrails: guard }, { openAIModeration: {} }] } } } },
                { name: 'd', gemini: {} },
                { name: 'e', vertexAI: { projectId: 'p' }, policies: { auth: { gcp: {} } } },
                { name: 'f', bedrock: { region: 'r' } },
              ],
            },
          ],
        },
        policies: { ai: { promptGuard: { response: [{ googleModelArmor: { templateId: 't', projectId: 'p' } }] } } },
      },
    }
    expect(toNeutralNames(written, 'ProxyBackend', definitions)).toEqual({
      kind: 'ProxyBackend',
      spec: {
        ai: {
          groups: [
            {
              providers: [
                { name: 'a', providerA: { model: 'openai' }, policies: { auth: { cloudB: { secretRef: { name: 's' } } } } },
                { name: 'b', providerB: { endpoint: 'e' } },
                {
                  name: 'c',
                  providerC: {},
                  policies: {
                    ai: { promptGuard: { request: [{ cloudGuardrails: { ...guard, policies: { auth: { cloudA: {} } } } }, { moderationApi: {} }] } },
                  },
                },
                { name: 'd', providerD: {} },
                { name: 'e', providerE: { projectId: 'p' }, policies: { auth: { cloudC: {} } } },
                { name: 'f', providerF: { region: 'r' } },
              ],
            },
          ],
        },
        policies: { ai: { promptGuard: { response: [{ modelArmor: { templateId: 't', projectId: 'p' } }] } } },
      },
    })
  })

  test('replaces real names of values', () => {
    const policy = (provider: string) => ({ spec: { backend: { mcp: { authentication: { provider, issuer: 'auth0' } } } } })
    expect(toNeutralNames(policy('auth0'), 'ProxyPolicy', definitions)).toEqual(policy('IdpKind1'))
    expect(toNeutralNames(policy('keycloak'), 'ProxyPolicy', definitions)).toEqual(policy('IdpKind2'))
  })

  test('replaces real names in a config file', () => {
    const file = (field: string, cloud: string) => ({
      backends: [{ name: 'openai', ai: { provider: { [field]: {} } }, policies: { auth: { [cloud]: {} } } }],
      binds: [{ port: 80, listeners: [{ routes: [{ backends: [{ cloudBackend: { [field === 'openai' ? 'agentCore' : 'agentRuntime']: {} } }] }] }] }],
    })
    expect(toNeutralNames(file('openai', 'aws'), 'ConfigFile', configDefinitions)).toEqual(file('providerA', 'cloudA'))
  })

  test('returns a value without real names itself, and leaves names of other fields alone', () => {
    const policy = { spec: { traffic: { transformation: { request: { metadata: { openai: '"aws"' } } } } } }
    expect(toNeutralNames(policy, 'ProxyPolicy', definitions)).toBe(policy)
  })
})

test('every field that has a neutral name is described under the real one, which stands before it', () => {
  const all = { ...definitions, ...configDefinitions }
  let found = 0
  for (const [definition, { properties = {} }] of Object.entries(all)) {
    const names = Object.keys(properties)
    for (const [neutral, schema] of Object.entries(properties)) {
      const real = realNameOf(definition, neutral)
      if (real === neutral) continue
      found++
      expect([definition, neutral, schema.description]).toEqual([definition, neutral, `Neutral name of ${real}.`])
      expect([definition, real, names.indexOf(real)]).toEqual([definition, real, names.indexOf(neutral) - 1])
      expect(properties[real]?.description ?? '').not.toContain('Neutral name')
    }
  }
  expect(found).toBeGreaterThan(30)
})

describe('renameInText', () => {
  const real = (text: string, written?: object): string => renameInText(text, () => written)

  test('writes the real names of fields and values into paths and sentences', () => {
    expect(real('ai.groups[0].providers[1].providerC.model: x; policies.auth.cloudA')).toBe('ai.groups[0].providers[1].anthropic.model: x; policies.auth.aws')
    expect(real('promptGuard.request.0.modelArmor.policies: IdpKind1 needs it')).toBe('promptGuard.request.0.googleModelArmor.policies: auth0 needs it')
  })

  test('keeps the names that the object has', () => {
    expect(real('policies.auth.cloudA of providerC', { auth: { cloudA: {} }, anthropic: {} })).toBe('policies.auth.cloudA of anthropic')
  })

  test('leaves quotations and parts of other words alone', () => {
    for (const text of ['"providerA" is no model', "x['modelArmor']", 'agentRuntimeRef', 'my-modelArmor-x']) expect(real(text)).toBe(text)
  })
})
