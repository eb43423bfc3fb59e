import { choice, list, object, ref, type Definitions } from '../../schema.ts'

export const authorizationDefinitions: Definitions = {
  Authorization: object(
    'Authorization by CEL expressions. The rules of all policies that apply to a request, on any level, are evaluated together within a phase: a matching Deny rejects the request; every Require must match; if there are Allow rules, one of them must match. Denied requests are rejected with 403.',
    {
      policy: ref('AuthorizationPolicy'),
      action: choice(
        ['Allow', 'Deny', 'Require'],
        'Effect of a match. Allow and Deny match if any expression is true, Require if all are. An expression that fails counts as false.',
        { default: 'Allow' },
      ),
    },
    ['policy'],
  ),
  AuthorizationPolicy: object(
    'Conditions.',
    {
      matchExpressions: list(ref('CELExpression'), 'Expressions of type boolean, for example `jwt.team == "sales"` or `request.method == "GET"`.', 1, 256),
    },
    ['matchExpressions'],
  ),
}
