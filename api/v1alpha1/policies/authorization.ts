import { choice, list, object, ref, type Definitions } from '../../schema.ts'

export const authorizationDefinitions: Definitions = {
  Authorization: object(
    'Authorization by CEL expressions. The rules of all policies that apply to a request, on whatever level, are taken together within a phase: any Deny that matches denies; every Require must match; then, if there are Allow rules, one of them must match. A denied request is answered 403.',
    {
      policy: ref('AuthorizationPolicy'),
      action: choice(
        ['Allow', 'Deny', 'Require'],
        'What a match means. Allow and Deny match when any expression is true, Require when all are. An expression that fails counts as false.',
        { default: 'Allow' },
      ),
    },
    ['policy'],
  ),
  AuthorizationPolicy: object(
    'Conditions.',
    {
      matchExpressions: list(ref('CELExpression'), 'Expressions that give a boolean, for example `jwt.team == "sales"` or `request.method == "GET"`.', 1, 256),
    },
    ['matchExpressions'],
  ),
}
