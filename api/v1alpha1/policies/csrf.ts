import { list, object, string, type Definitions } from '../../schema.ts'

export const csrfDefinitions: Definitions = {
  CSRF: object(
    'Protection against cross-site request forgery. GET, HEAD and OPTIONS pass, and so do requests with neither `Sec-Fetch-Site` nor `Origin`; others must come from the same origin or from one listed here, else 403.',
    {
      additionalOrigins: list(
        string('Origin: `scheme://host` with optional `:port`.', {
          minLength: 1,
          maxLength: 256,
          pattern: '^[A-Za-z][A-Za-z0-9+.-]*://([A-Za-z0-9._-]+|\\[[0-9A-Fa-f:.]+\\])(:[0-9]{1,5})?$',
        }),
        'Origins allowed besides that of the destination, compared as exact text.',
        1,
        16,
      ),
    },
  ),
}
