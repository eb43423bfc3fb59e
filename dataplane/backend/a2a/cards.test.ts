import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { canonicalizeAgentCard, generateAgentCardSignature, verifyAgentCardSignature, type AgentCard } from '@a2a-js/sdk'
import { describe, expect, test } from '@jest/globals'
import type { JsonObject } from '#api/json/index.ts'
import type { A2ABackend } from '#gen/config/types.ts'
import { Exchange } from '../../request/exchange/exchange.ts'
import { variables } from '../../request/exchange/variables.ts'
import { testConnection, testRequest } from '../../testing/exchange.ts'
import { agentOf } from './agent.ts'
import { canonicalCard } from './canonical.ts'

/** A card with a value of each kind, and values that are not signed. */
const card = {
  name: 'Ünïcode "agent"',
  description: '',
  version: '1.0',
  url: 'http://of.version.0.3/',
  protocolVersion: '0.3.0',
  supportedInterfaces: [{ url: 'https://gw.example/rpc', protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' }],
  provider: { organization: 'Example', url: 'https://example.com' },
  capabilities: {
    streaming: false,
    extendedAgentCard: true,
    extensions: [
      { uri: 'urn:x', required: false, params: { z: 1.5, a: [1, '', null, { b: 'x' }], e: {}, big: 1e21, é: true } },
      { uri: 'urn:y', required: true },
    ],
  },
  securitySchemes: {
    key: { apiKeySecurityScheme: { name: 'x-api-key', location: 'header' } },
    oauth: {
      oauth2SecurityScheme: {
        description: 'Login',
        flows: { authorizationCode: { authorizationUrl: 'https://id/a', tokenUrl: 'https://id/t', scopes: { read: 'Read', none: '' }, pkceRequired: true } },
      },
    },
    oidc: { openIdConnectSecurityScheme: { openIdConnectUrl: 'https://id' } },
    http: { httpAuthSecurityScheme: { scheme: 'bearer', bearerFormat: 'JWT' } },
  },
  securityRequirements: [{ schemes: { key: { list: [] }, oauth: { list: ['read'] } } }],
  defaultInputModes: ['text/plain'],
  defaultOutputModes: [],
  skills: [
    { id: 'orders.read', name: 'Read', description: 'Reads', tags: ['orders'], examples: [], unknown: 1 },
    { id: 'orders.write', name: 'Write', description: 'Writes', tags: [], securityRequirements: [{ schemes: { oauth: { list: ['write'] } } }] },
    { id: 'admin', name: 'Admin', description: 'Administers', tags: ['x'] },
  ],
  iconUrl: 'https://example.com/icon.png',
}
const asCard = (value: object): AgentCard => value as never

const keys = {
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ES384: () => generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  EdDSA: () => generateKeyPairSync('ed25519'),
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
}
const pemOf = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' })

function finish(config: Partial<A2ABackend>, signingKey?: string, value: JsonObject = card, groups: string[] = []): Promise<JsonObject> {
  const exchange = new Exchange(testConnection, testRequest(), performance.now())
  variables.jwt.set(exchange, { groups })
  const agent = agentOf({ backend: { host: '10.0.0.1', port: 80, ...config }, signingKey })
  return agent?.finishCard(value, exchange) ?? Promise.resolve(value)
}
const idsOf = (value: JsonObject): unknown[] => (value['skills'] as { id: unknown }[]).map(({ id }) => id)

describe('signed cards (mcp.md §14)', () => {
  test.each<[string, object]>([
    ['with members of all kinds', card],
    ['without members', {}],
    ['with members of version 0.3 only', { name: 'a', url: 'http://a/', supportsAuthenticatedExtendedCard: true, security: [{ a: [] }] }],
    ['with a name of a prototype', { name: 'a', securitySchemes: { constructor: { mtlsSecurityScheme: { description: 'x' } } } }],
  ])('the canonical text of a card %s is that of the SDK', (_title, value) => {
    expect(canonicalCard(value as JsonObject)).toBe(canonicalizeAgentCard(asCard(value)))
  })

  test.each(Object.entries(keys))('a client of the SDK verifies a signature by %s', async (alg, generate) => {
    const { privateKey, publicKey } = generate()
    const signed = await finish({ cardSigning: { keyId: 'k1', jwksUrl: 'https://gw.example/jwks' } }, pemOf(privateKey))
    const seen: unknown[] = []
    const verify = verifyAgentCardSignature((kid, jku) => {
      seen.push(kid, jku)
      return Promise.resolve(publicKey)
    })
    await verify(asCard(signed))
    expect(seen).toEqual(['k1', 'https://gw.example/jwks'])
    const [{ protected: header = '' } = {}] = signed['signatures'] as { protected?: string }[]
    expect(JSON.parse(Buffer.from(header, 'base64url').toString())).toMatchObject({ alg, typ: 'JOSE' })
    await expect(verify(asCard({ ...signed, name: 'forged' }))).rejects.toThrow('No valid signatures')
  })

  test('the key id defaults to the thumbprint of the key', async () => {
    // The key and thumbprint of RFC 8037, appendices A.1 and A.3.
    const d = 'nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A'
    const x = '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo'
    const key = createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d, x }, format: 'jwk' })
    const { signatures } = (await finish({ cardSigning: {} }, pemOf(key))) as { signatures?: { protected: string }[] }
    expect(JSON.parse(Buffer.from(signatures?.[0]?.protected ?? '', 'base64url').toString())).toEqual({
      alg: 'EdDSA',
      typ: 'JOSE',
      kid: 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k',
    })
  })

  test('a signature of the agent stays beside that of the gateway if the card is unchanged, and is removed with a skill', async () => {
    const [agent, gateway] = [keys.ES256(), keys.ES256()]
    const { signatures: _, ...own } = card as JsonObject
    const signedByAgent = (await generateAgentCardSignature(agent.privateKey, { alg: 'ES256', kid: 'agent', typ: 'JOSE' })(
      asCard(own),
    )) as unknown as JsonObject
    const find = (kid: string): Promise<KeyObject> => Promise.resolve(kid === 'agent' ? agent.publicKey : gateway.publicKey)
    const both = await finish({ cardSigning: { keyId: 'gateway' } }, pemOf(gateway.privateKey), signedByAgent)
    expect(both['signatures']).toHaveLength(2)
    await verifyAgentCardSignature(find)(asCard({ ...both, signatures: (both['signatures'] as unknown[]).slice(0, 1) }))
    const fewer = await finish({ cardSigning: { keyId: 'gateway' }, skills: [{ id: 'admin' }] }, pemOf(gateway.privateKey), signedByAgent)
    expect(fewer['signatures']).toHaveLength(1)
    await verifyAgentCardSignature(find)(asCard(fewer))
  })

  test.each<[string, string | undefined, string]>([
    ['a Secret that does not resolve', undefined, 'the Secret of cardSigning does not resolve'],
    ['text that is no key', 'x', 'it holds no unencrypted private key in PEM'],
    ['a small RSA key', pemOf(generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey), 'RSA of at least 2048 bits'],
    ['a key for other uses', pemOf(generateKeyPairSync('x25519').privateKey), 'it holds a key of type x25519'],
    ['a public key', createPublicKey(keys.ES256().privateKey).export({ type: 'spki', format: 'pem' }), 'no unencrypted private key'],
  ])('%s fails the card', async (_title, key, problem) => {
    await expect(finish({ cardSigning: {} }, key)).rejects.toThrow(problem)
  })
})

describe('skills of cards (mcp.md §14)', () => {
  test.each<[string, NonNullable<A2ABackend['skills']>, string[], unknown[]]>([
    ['an id', [{ id: 'admin' }], [], ['admin']],
    ['a pattern', [{ id: 'orders.*' }], [], ['orders.read', 'orders.write']],
    ['a pattern with text between two wildcards', [{ id: '*ders.r*' }], [], ['orders.read']],
    ['a pattern whose ends would overlap', [{ id: 'adm*min' }], [], []],
    ['an expression that is true', [{ id: 'orders.read' }, { id: '*', when: '"staff" in jwt.groups' }], ['staff'], ['orders.read', 'orders.write', 'admin']],
    ['an expression that is false', [{ id: 'orders.read' }, { id: '*', when: '"staff" in jwt.groups' }], [], ['orders.read']],
    ['an expression that fails', [{ id: '*', when: 'jwt.missing == 1' }], ['staff'], []],
    ['an expression that does not parse', [{ id: '*', when: '(' }], ['staff'], []],
  ])('are selected by %s', async (_title, skills, groups, expected) => {
    expect(idsOf(await finish({ skills }, undefined, card, groups))).toEqual(expected)
  })

  test('without a text as id are not shown, and a list that is none fails the card', async () => {
    const skills: A2ABackend['skills'] = [{ id: '*' }]
    expect(idsOf(await finish({ skills }, undefined, { ...card, skills: [{ id: 1 }, { id: 'a' }] }))).toEqual(['a'])
    await expect(finish({ skills }, undefined, { ...card, skills: 'x' })).rejects.toThrow('skills is not a list')
  })
})
