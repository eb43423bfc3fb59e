import { exactlyOneOf, list, object, ref, string, type Definitions } from '../../schema.ts'
import { port } from '../shared.ts'

export const staticBackendDefinitions: Definitions = {
  StaticBackend: object('One fixed destination.', { host: ref('Host'), port: port('Port.') }, ['host', 'port']),
  A2ABackend: object(
    'An agent that speaks A2A.',
    {
      host: ref('Host'),
      port: port('Port.'),
      skills: list(
        ref('A2ASkill'),
        'Skills that agent cards show: those that an entry selects. Not set: all. Requests name no skill, so that this limits what clients see, not what they can ask for.',
        1,
        64,
      ),
      cardSigning: ref('A2ACardSigning', 'Signs agent cards, because signatures of the agent do not match a card that the gateway changes.'),
    },
    ['host', 'port'],
  ),
  A2ASkill: object(
    'Selects skills of an agent card.',
    {
      id: string('Id of the skill; `*` stands for any characters.', { minLength: 1, maxLength: 256 }),
      when: ref(
        'CELExpression',
        'Shows the skills to requests for which it is true, such as `"staff" in jwt.groups`. An expression that fails is false. Default: true.',
      ),
    },
    ['id'],
  ),
  A2ACardSigning: object(
    'A key that agent cards are signed with (JWS, A2A 1.0 section 8.4): exactly one of key, secretRef. If it is not available, cards fail with 503.',
    {
      key: string(
        'Private key in PEM: EC (P-256, P-384, P-521), Ed25519, or RSA of at least 2048 bits. For config files; in manifests prefer secretRef, because everyone who may read the object can read it.',
        {
          minLength: 1,
          maxLength: 16_384,
        },
      ),
      secretRef: ref('SecretReference', 'Secret with the entry `key`: the private key in PEM.'),
      keyId: string('Header `kid` of signatures. Default: the thumbprint of the public key (RFC 7638).', { minLength: 1, maxLength: 256 }),
      jwksUrl: string('Header `jku` of signatures: the HTTPS URL of a key set with the public key. Default: none.', {
        minLength: 1,
        maxLength: 2048,
        pattern: '^https://[!-~]+$',
      }),
    },
    [],
    [exactlyOneOf('key', 'secretRef')],
  ),
}
