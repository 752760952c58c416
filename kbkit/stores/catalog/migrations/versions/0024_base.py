"""The oldest catalog that is migrated; `kbkit.stores.catalog.database.create` makes new ones."""

revision = "0024"
down_revision = None


def upgrade() -> None:
    raise NotImplementedError
