import { choice, exactlyOneOf, object, ref, string, type Definitions } from '../../schema.ts'
import { exactlyOneOfNames, withRealNames } from '../real-names.ts'

const secretEntry = (name: string) => string(`${name}.`, { minLength: 1, maxLength: 256 })

export const backendAuthDefinitions: Definitions = {
  BackendAuth: object(
    'Credentials sent to the backend: exactly one of key, secretRef, passthrough, aws, azure, gcp. If they are not available, the request fails with 500.',
    withRealNames('BackendAuth', {
      key: string('Value sent as `Authorization: Bearer`. Not recommended: everyone who may read this object can read it; prefer secretRef.', {
        minLength: 1,
        maxLength: 2048,
      }),
      secretRef: ref(
        'SecretReference',
        'Secret whose entry `Authorization` is sent as `Authorization: Bearer`; white space around it and one leading `Bearer ` are removed.',
      ),
      passthrough: object(
        'Forwards the credential that a client authentication policy (JWT, API key) verified and removed. No effect without such a policy.',
        {},
      ),
      cloudA: ref('CloudAAuth'),
      cloudB: ref('CloudBAuth'),
      cloudC: ref('CloudCAuth'),
    }),
    [],
    [exactlyOneOfNames('BackendAuth', 'key', 'secretRef', 'passthrough', 'cloudA', 'cloudB', 'cloudC')],
  ),
  CloudAAuth: object('cloudA is AWS: requests are signed (Signature Version 4).', {
    secretRef: ref(
      'SecretReference',
      'Secret with entries `accessKey`, `secretKey` and optionally `sessionToken`. Not set: the default credential chain: environment, web identity, container and instance metadata.',
    ),
  }),
  CloudBAuth: object(
    'cloudB is Azure: an access token of Microsoft Entra ID; exactly one of secretRef, managedIdentity.',
    { secretRef: ref('SecretReference', 'Secret with entries `clientId`, `tenantId` and `clientSecret`.'), managedIdentity: ref('CloudBManagedIdentity') },
    [],
    [exactlyOneOf('secretRef', 'managedIdentity')],
  ),
  CloudBManagedIdentity: object(
    'A user-assigned managed identity.',
    { clientId: secretEntry('Client id'), objectId: secretEntry('Object id'), resourceId: secretEntry('Resource id') },
    ['clientId', 'objectId', 'resourceId'],
  ),
  CloudCAuth: object(
    'cloudC is Google Cloud: a token of the workload (application default credentials).',
    {
      type: choice(['AccessToken', 'IdToken'], 'AccessToken for Google APIs, IdToken for services such as Cloud Run.', { default: 'AccessToken' }),
      audience: ref('ShortString', 'Audience of the id token; only with IdToken. Default: `https://` and the host name of the backend.'),
    },
    [],
    [
      {
        rule: "!has(self.audience) || (has(self.type) && self.type == 'IdToken')",
        message: 'audience may only be set when type is IdToken',
        fieldPath: '.audience',
        reason: 'FieldValueForbidden',
      },
    ],
  ),
}
