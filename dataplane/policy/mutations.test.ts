import { create } from '@bufbuild/protobuf'
import { describe, expect, test } from '@jest/globals'
import { HeaderValueOption_HeaderAppendAction as Action, HeaderValueOptionSchema } from '#gen/proto/envoy/config/core/v3/base_pb.js'
import { testExchange } from '../testing/exchange.ts'
import { changeRequest } from './mutations.ts'

const option = (key: string, value: string, appendAction = Action.OVERWRITE_IF_EXISTS_OR_ADD) =>
  create(HeaderValueOptionSchema, { header: { key, value }, appendAction })

describe('header mutations of a service', () => {
  test.each([Action.OVERWRITE_IF_EXISTS_OR_ADD, Action.ADD_IF_ABSENT])(
    'replace spellings with underscores that the client sent (append_action %s)',
    (action) => {
      const exchange = testExchange({}, { x_user: 'evil', x_secret: 'evil', x_other: '1' })
      changeRequest(exchange, { setHeaders: [option('X-User', 'alice', action)], removeHeaders: ['X-Secret'] })
      expect(Object.fromEntries(exchange.request.headers)).toEqual({ 'x-user': 'alice', x_other: '1' })
    },
  )
})
