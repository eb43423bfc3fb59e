import { choice, exactlyOneOf, list, object, ref, string, type Definitions } from '../../schema.ts'

export const basicAuthenticationDefinitions: Definitions = {
  BasicAuthentication: object(
    'HTTP basic authentication (RFC 7617): exactly one of users, secretRef. On success the Authorization header is removed and the user is `basicAuth.username`.',
    {
      mode: choice(
        ['Strict', 'Optional'],
        'Strict: valid credentials must be present, else 401. Optional: credentials that are present must be valid; requests without pass.',
        {
          default: 'Strict',
        },
      ),
      realm: string('Realm in the WWW-Authenticate header of failed requests.', { default: 'Restricted' }),
      users: list(
        string('One htpasswd line, `username:hash`.', { minLength: 1, maxLength: 1024 }),
        'Users with hashed passwords (MD5 `$apr1$`, bcrypt, `{SHA}`, crypt); raw passwords are never accepted. Lines that do not parse are skipped; of two lines for one user the last counts.',
        1,
        256,
      ),
      secretRef: ref('SecretReference', 'Secret whose entry `.htaccess` is a complete htpasswd file. If it is missing, all requests are rejected.'),
    },
    [],
    [exactlyOneOf('users', 'secretRef')],
  ),
}
