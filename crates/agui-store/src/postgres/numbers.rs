//! Numbers of rows as values of Postgres.

use crate::{MessageNumber, QueueNumber, RunNumber, StateNumber, ThreadNumber};

macro_rules! column_numbers {
    ($($name:ident),+) => {$(
        impl sqlx::Type<sqlx::Postgres> for $name {
            fn type_info() -> sqlx::postgres::PgTypeInfo {
                <i64 as sqlx::Type<sqlx::Postgres>>::type_info()
            }
        }

        impl sqlx::postgres::PgHasArrayType for $name {
            fn array_type_info() -> sqlx::postgres::PgTypeInfo {
                <i64 as sqlx::postgres::PgHasArrayType>::array_type_info()
            }
        }

        impl sqlx::Encode<'_, sqlx::Postgres> for $name {
            fn encode_by_ref(
                &self,
                buffer: &mut sqlx::postgres::PgArgumentBuffer,
            ) -> Result<sqlx::encode::IsNull, sqlx::error::BoxDynError> {
                <i64 as sqlx::Encode<'_, sqlx::Postgres>>::encode_by_ref(&self.0, buffer)
            }
        }

        impl sqlx::Decode<'_, sqlx::Postgres> for $name {
            fn decode(
                value: sqlx::postgres::PgValueRef<'_>,
            ) -> Result<Self, sqlx::error::BoxDynError> {
                <i64 as sqlx::Decode<'_, sqlx::Postgres>>::decode(value).map(Self)
            }
        }
    )+};
}

column_numbers!(ThreadNumber, QueueNumber, RunNumber, MessageNumber, StateNumber);
