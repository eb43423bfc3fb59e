import { choice, exactlyOneOf, object, ref, type Definitions } from '../../schema.ts'

export const apiKeyAuthenticationDefinitions: Definitions = {
  APIKeyAuthentication: object(
    'API keys sent as `Authorization: Bearer`: exactly one of secretRef, secretSelector. Each Secret entry is one key; the name of the entry is arbitrary, its value is the key, or a JSON object with `key` or `keyHash` (`sha256:` and hex), and optionally `metadata` and `expires` (RFC 3339). On success the header is removed and the metadata is usable as `apiKey.<field>`.',
    {
      mode: choice(
        ['Strict', 'Optional', 'Permissive'],
        'Strict: a valid key must be present, else 401. Optional: a key that is present must be valid; requests without one pass. Permissive: no request is rejected.',
        { default: 'Strict' },
      ),
      secretRef: ref('SecretReference', 'Secret whose entries are API keys. If it is missing, all requests are rejected, unless mode is Permissive.'),
      secretSelector: ref(
        'SecretSelector',
        'Selects several Secrets whose entries are API keys. The same key in several of them is undefined behavior. If none matches, all requests are rejected, unless mode is Permissive.',
      ),
    },
    [],
    [exactlyOneOf('secretRef', 'secretSelector')],
  ),
}
