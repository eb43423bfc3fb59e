import { atMostOneOf, integer, keyedList, object, ref, string, type Definitions } from '../../schema.ts'
import { whenChanging } from '../shared.ts'

export const directResponseDefinitions: Definitions = {
  DirectResponse: object(
    'Responds to the request without forwarding it, after authentication, authorization and limits.',
    {
      status: integer('Status code.', 200, 599),
      body: string('Body; none when not set.', { minLength: 1, maxLength: 4096 }),
      bodyExpression: ref('CELExpression', 'Body: strings and bytes unchanged, other values as JSON. If it fails, the response is 500.'),
      headers: keyedList('name', ref('DirectResponseHeader'), 'Headers. Without `content-type` here, the response has none.', 1, 16),
      keySet: ref('KeySetResponse'),
      when: whenChanging,
    },
    ['status'],
    [
      atMostOneOf('body', 'bodyExpression', 'keySet'),
      { rule: '!has(self.keySet) || !has(self.headers)', message: 'headers may not be set with keySet', fieldPath: '.headers' },
    ],
  ),
  DirectResponseHeader: object(
    'A header whose value is computed.',
    {
      name: ref('HTTPHeaderName', 'Name. Headers that frame the message, such as `content-length`, are ignored.'),
      value: ref('CELExpression', 'Value. If it fails, or is neither string, bytes nor number, the header is omitted.'),
    },
    ['name', 'value'],
  ),
  KeySetResponse: object(
    'Responds with the public keys of a Secret as a JSON Web Key Set, which clients may keep for 5 minutes: for the tokens of `backend.auth.jwtSign`.',
    {
      secretRef: ref(
        'SecretReference',
        'Secret with the entry `key`, and optionally `nextKey` and `previousKey`: private keys in PEM. If `key` is not usable: 500.',
      ),
    },
    ['secretRef'],
  ),
}
